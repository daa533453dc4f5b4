package mock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"caper/cuda"
	"caper/cuda/emulator"
	"caper/cuda/mock"
)

// text reads a kernel text of the emulator's tests, whose faults it is to name by file.
func text(t *testing.T, file string) cuda.Source {
	t.Helper()
	content, err := os.ReadFile("../emulator/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return cuda.Source{Name: file, Text: string(content)}
}

// start makes emulated kernels known to the mock.
func start(t *testing.T, sources ...cuda.Source) *mock.Mock {
	t.Helper()
	m, err := mock.Start()
	if errors.Is(err, mock.ErrNoCompiler) {
		t.Skip(err)
	}
	must(t, err)
	var all []emulator.Source
	for _, s := range sources {
		all = append(all, emulator.Source(s))
	}
	library, err := emulator.Build(context.Background(), emulator.Options{}, all...)
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	must(t, err)
	must(t, m.AddKernels(library.Path))
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// card is a pretended GPU with a module.
type card struct {
	*testing.T
	gpu    *cuda.Device
	stream *cuda.Stream
	module *cuda.Module
}

func newCard(t *testing.T, source cuda.Source) *card {
	t.Helper()
	gpu, err := cuda.Open(0)
	must(t, err)
	stream, err := gpu.NewStream(cuda.NormalPriority)
	must(t, err)
	compiler := cuda.NewCompiler()
	compiler.Cache = t.TempDir()
	cubin, err := compiler.Compile(source, gpu.Arch())
	must(t, err)
	module, err := gpu.Load(cubin)
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(module.Close(), stream.Close(), gpu.Close())) })
	return &card{t, gpu, stream, module}
}

// upload returns GPU memory that holds bf16 elements.
func (c *card) upload(elements []uint16) cuda.Ptr {
	c.Helper()
	p, err := c.gpu.Alloc(cuda.Bytes(2 * len(elements)))
	must(c.T, err)
	c.Cleanup(func() { must(c.T, c.gpu.Free(p)) })
	host, err := c.gpu.AllocHost(cuda.Bytes(2 * len(elements)))
	must(c.T, err)
	copy(cuda.HostAs[uint16](host), elements)
	must(c.T, errors.Join(c.stream.ToDevice(p, host), c.stream.Synchronize(), host.Free()))
	return p
}

func (c *card) download(p cuda.Ptr, n int) []uint16 {
	c.Helper()
	host, err := c.gpu.AllocHost(cuda.Bytes(2 * n))
	must(c.T, err)
	must(c.T, errors.Join(c.stream.ToHost(host, p), c.stream.Synchronize()))
	elements := slices.Clone(cuda.HostAs[uint16](host))
	must(c.T, host.Free())
	return elements
}

// A Hopper kernel goes the whole way: compiled, loaded, given tensor maps and 200 KiB of
// shared memory, captured into a graph, and run by the emulator in two orders of threads.
func TestProductOnTheMock(t *testing.T) {
	source := text(t, "gemm_wgmma.cu")
	m := start(t, source)
	c := newCard(t, source)
	const rows, cols, depth = 100, 254, 128
	random := rand.New(rand.NewPCG(3, 4))
	a, b := make([]uint16, rows*depth), make([]uint16, cols*depth)
	for _, x := range [][]uint16{a, b} {
		for i := range x {
			x[i] = uint16(math.Float32bits(random.Float32()-0.5) >> 16)
		}
	}
	at, bt, out := c.upload(a), c.upload(b), c.upload(make([]uint16, rows*cols))
	boxes := func(p cuda.Ptr, rows uint64, box uint32) cuda.TensorMap {
		tensors, err := c.gpu.TensorMap(cuda.TensorLayout{Element: cuda.BFloat16, At: p, Sizes: []uint64{depth, rows}, Strides: []uint64{2 * depth}, Box: []uint32{64, box}, Swizzle: 128})
		must(t, err)
		return tensors
	}
	aMap, bMap := boxes(at, rows, 128), boxes(bt, cols, 256)
	kernel, err := c.module.Function("gemm_wgmma")
	must(t, err)
	args := new(cuda.Args).TensorMap(&aMap).TensorMap(&bMap).Ptr(out).Int32(rows).Int32(cols).Int32(depth)
	graph, err := c.stream.Capture(func() error {
		return kernel.Launch(c.stream, cuda.Launch{Grid: cuda.Dim{X: 1}, Block: cuda.Dim{X: 384}, Shared: 4 * (128 + 256) * 64 * 2}, args)
	})
	must(t, err)
	exec, err := graph.Instantiate()
	must(t, err)
	must(t, exec.Launch(c.stream))
	got := c.download(out, rows*cols)
	if err := checkProduct(got, a, b, cols, depth); err != nil {
		t.Error(err)
	}
	must(t, errors.Join(exec.Close(), graph.Close()))

	m.SetOrder(7)
	defer m.SetOrder(0)
	must(t, kernel.Launch(c.stream, cuda.Launch{Grid: cuda.Dim{X: 1}, Block: cuda.Dim{X: 384}, Shared: 4 * (128 + 256) * 64 * 2}, args))
	if !slices.Equal(c.download(out, rows*cols), got) {
		t.Error("another order of threads gives other bits")
	}
}

// checkProduct compares c with a b^T. A result is rounded to 8 bits, and sums in float32
// lose little beside.
func checkProduct(c, a, b []uint16, cols, depth int) error {
	value := func(x uint16) float64 { return float64(math.Float32frombits(uint32(x) << 16)) }
	for i := range c {
		want := 0.0
		for k := range depth {
			want += value(a[i/cols*depth+k]) * value(b[i%cols*depth+k])
		}
		if got := value(c[i]); !(math.Abs(got-want) <= math.Abs(want)/256+1e-4) {
			return fmt.Errorf("element %d is %g, want %g", i, got, want)
		}
	}
	return nil
}

// A kernel's mistake comes back from the stream with the line of its text.
func TestFaultOnTheMock(t *testing.T) {
	source := cuda.Source{Name: "wrong.cu", Text: "#include \"dialect.cuh\"\n" +
		"extern \"C\" __global__ void __launch_bounds__(64) past_the_end(float* x, int n) {\n" +
		"    x[threadIdx.x * n] = 1;\n}\n"}
	m := start(t, source)
	c := newCard(t, source)
	kernel, err := c.module.Function("past_the_end")
	must(t, err)
	x := c.upload(make([]uint16, 2*64))
	launch := cuda.Launch{Grid: cuda.Dim{X: 1}, Block: cuda.Dim{X: 64}}
	must(t, kernel.Launch(c.stream, launch, new(cuda.Args).Ptr(x).Int32(1)))
	must(t, c.stream.Synchronize())
	must(t, kernel.Launch(c.stream, launch, new(cuda.Args).Ptr(x).Int32(2)))
	err = c.stream.Synchronize()
	m.Recover()
	if err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_LAUNCH_FAILED") || !strings.Contains(err.Error(), "wrong.cu:3: kernel past_the_end") {
		t.Errorf("got %v", err)
	}
}

func TestNoKernels(t *testing.T) {
	m := start(t)
	if err := m.AddKernels("/nonexistent.so"); err == nil {
		t.Error("a library that is not there was added")
	}
}
