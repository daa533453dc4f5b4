package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"caper/cuda/dialect"
	"caper/cuda/mock"
)

// testMock is the mock of the driver that all tests of this package share; nil where
// there is no gcc. A part of the tests runs in processes of its own, without it.
var testMock *mock.Mock

func TestMain(m *testing.M) {
	if part, ok := parts[os.Getenv("CAPER_TEST_PART")]; ok {
		part()
		os.Exit(0)
	}
	var err error
	testMock, err = mock.Start()
	if err != nil && !errors.Is(err, mock.ErrNoCompiler) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const testText = `
extern "C" __global__ void every_type(char*, int, unsigned, long long, unsigned long long, float, double, const TensorMap, int) {}
extern "C" __global__ void __launch_bounds__(256) add(float* x, float v, int n) {}
extern "C" __global__ void __launch_bounds__(256) broken(int n) {}
extern "C" __global__ void __launch_bounds__(256) nowhere(int n) {}
`

var testSource = Source{Name: "cuda/test.cu", Text: testText}

// addTestKernels builds testdata/kernels.c and makes its kernels known.
var addTestKernels = sync.OnceValue(func() error {
	folder, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "kernels.so")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-I.", "-o", file, "testdata/kernels.c").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return testMock.AddKernels(file)
})

func testKernels(t testing.TB) {
	t.Helper()
	needMock(t)
	if err := addTestKernels(); err != nil {
		t.Fatal(err)
	}
}

func needMock(t testing.TB) {
	t.Helper()
	if testMock == nil {
		t.Skip(mock.ErrNoCompiler)
	}
}

// bench is a GPU of the mock with what launches need.
type bench struct {
	t      testing.TB
	gpu    *Device
	stream *Stream
	module *Module
}

// newBench opens everything; at the end of the test nothing may be left.
func newBench(t testing.TB) *bench {
	t.Helper()
	testKernels(t)
	b := &bench{t: t}
	var err error
	b.gpu, err = Open(0)
	b.must(err)
	b.stream, err = b.gpu.NewStream(NormalPriority)
	b.must(err)
	cubin, err := testCompiler(t).Compile(testSource, b.gpu.Arch())
	b.must(err)
	b.module, err = b.gpu.Load(cubin)
	b.must(err)
	t.Cleanup(func() {
		b.must(b.module.Close())
		b.must(b.stream.Close())
		b.must(b.gpu.Close())
		if left := testMock.Alive(); left != "" {
			t.Errorf("left over: %s", left)
		}
	})
	return b
}

// testCompiler is a compiler whose cache is the test's own.
func testCompiler(t testing.TB) *Compiler {
	return &Compiler{Cache: t.TempDir(), headers: []dialect.Header{{Name: "dialect.cuh", Text: "// none"}}}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) function(name string) *Function {
	b.t.Helper()
	f, err := b.module.Function(name)
	b.must(err)
	return f
}

// floats returns n floats of the GPU's memory that hold their index.
func (b *bench) floats(n int) Ptr {
	b.t.Helper()
	p, err := b.gpu.Alloc(Bytes(4 * n))
	b.must(err)
	b.t.Cleanup(func() { b.must(b.gpu.Free(p)) })
	host, err := b.gpu.AllocHost(Bytes(4 * n))
	b.must(err)
	for i := range n {
		HostAs[float32](host)[i] = float32(i)
	}
	b.must(b.stream.ToDevice(p, host))
	b.must(b.stream.Synchronize())
	b.must(host.Free())
	return p
}

// read returns n floats of the GPU's memory.
func (b *bench) read(p Ptr, n int) []float32 {
	b.t.Helper()
	host, err := b.gpu.AllocHost(Bytes(4 * n))
	b.must(err)
	b.must(b.stream.ToHost(host, p))
	b.must(b.stream.Synchronize())
	values := append([]float32{}, HostAs[float32](host)...)
	b.must(host.Free())
	return values
}
