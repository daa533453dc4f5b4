package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"caper/cuda/dialect"
)

// compilations counts how often work has NVRTC compile.
func compilations(work func()) int {
	n := 0
	for _, call := range testMock.Record(work) {
		if strings.HasPrefix(call, "nvrtcCompileProgram") {
			n++
		}
	}
	return n
}

// A text is compiled once for each architecture, and again when anything that the cubin
// depends on is another.
func TestCubinCache(t *testing.T) {
	needMock(t)
	c := testCompiler(t)
	compile := func(s Source, arch string, want int) *Cubin {
		t.Helper()
		var cubin *Cubin
		n := compilations(func() {
			var err error
			if cubin, err = c.Compile(s, arch); err != nil {
				t.Fatal(err)
			}
		})
		if n != want {
			t.Errorf("compiled %d times, want %d", n, want)
		}
		return cubin
	}
	first := compile(testSource, "sm_90a", 1)
	again := compile(testSource, "sm_90a", 0)
	if string(first.Image) != string(again.Image) || len(again.Kernels) != 4 || again.Kernels[1] != first.Kernels[1] || again.Log != first.Log {
		t.Errorf("from the cache: %+v", again)
	}
	if first.Origin != "compiled by NVRTC 13.0" || filepath.Dir(again.Origin) != c.Cache || !strings.HasPrefix(filepath.Base(again.Origin), "cuda.test.sm_90a.") {
		t.Errorf("origins %s, %s", first.Origin, again.Origin)
	}
	compile(testSource, "sm_80", 1)
	compile(Source{testSource.Name, testSource.Text + " "}, "sm_90a", 1)
	c.headers = []dialect.Header{{Name: "dialect.cuh", Text: "// other"}}
	compile(testSource, "sm_90a", 1)

	// Whatever happens to a file, the text is compiled again and the file is mended.
	for name, damage := range map[string]func(path string) error{
		"cut": func(p string) error { return os.Truncate(p, 100) },
		"changed": func(p string) error {
			return os.WriteFile(p, []byte(strings.Replace(string(first.Image), "add", "ada", 1)), 0o644)
		},
		"empty":     func(p string) error { return os.Truncate(p, 0) },
		"gone":      os.Remove,
		"no record": func(p string) error { return os.Remove(strings.TrimSuffix(p, "cubin") + "json") },
		"bad record": func(p string) error {
			return os.WriteFile(strings.TrimSuffix(p, "cubin")+"json", []byte(`{"key": `), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := compile(testSource, "sm_90a", 0).Origin
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			compile(testSource, "sm_90a", 1)
			compile(testSource, "sm_90a", 0)
		})
	}
	left, _ := filepath.Glob(filepath.Join(c.Cache, ".*"))
	if len(left) > 0 {
		t.Errorf("temporary files left: %v", left)
	}
}

// Many compile and read one cache at once, and all get whole cubins.
func TestCubinCacheAtOnce(t *testing.T) {
	needMock(t)
	c := testCompiler(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 5 {
				cubin, err := c.Compile(testSource, "sm_90a")
				if err != nil || !strings.HasSuffix(string(cubin.Image), testText+"\x00") {
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
	if left := testMock.Alive(); left != "" {
		t.Errorf("left over: %s", left)
	}
}

// A cache that cannot be written costs time only.
func TestCacheNotWritable(t *testing.T) {
	needMock(t)
	c := testCompiler(t)
	file := filepath.Join(c.Cache, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.Cache = filepath.Join(file, "cache")
	if _, err := c.Compile(testSource, "sm_90a"); err != nil {
		t.Error(err)
	}
}

// Compiled kernels that travel with the program come before the compiler.
func TestCubinFolder(t *testing.T) {
	needMock(t)
	maker, folder := testCompiler(t), t.TempDir()
	if _, err := maker.WriteCubin(folder, testSource, "sm_90a"); err != nil {
		t.Fatal(err)
	}
	user := testCompiler(t)
	user.Cubins = folder
	var cubin *Cubin
	calls := testMock.Record(func() {
		var err error
		if cubin, err = user.Compile(testSource, "sm_90a"); err != nil {
			t.Fatal(err)
		}
	})
	if len(calls) != 1 || calls[0] != "" || filepath.Dir(cubin.Origin) != folder {
		t.Errorf("calls %q, from %s", calls, cubin.Origin)
	}
	if n := compilations(func() { user.Compile(testSource, "sm_80") }); n != 1 {
		t.Errorf("what is not in the folder was compiled %d times", n)
	}
	if err := os.Truncate(cubin.Origin, 10); err != nil {
		t.Fatal(err)
	}
	if cubin, err := user.Compile(testSource, "sm_90a"); err != nil || filepath.Dir(cubin.Origin) == folder {
		t.Errorf("a damaged file of the folder was used, or %v", err)
	}
}

// What cannot be compiled, or would run slowly, is refused with the compiler's reason.
func TestRefusedKernels(t *testing.T) {
	needMock(t)
	kernel := "extern \"C\" __global__ void __launch_bounds__(256) slow(int n) {}\n"
	for text, want := range map[string]string{
		"#error":                      "cuda/test.cu for sm_90a: cuda/test.cu(1): error: #error directive: nvrtcCompileProgram of cuda/test.cu: NVRTC_ERROR_COMPILATION (6)",
		kernel + "// mock: spills":    "cuda/test.cu for sm_90a: kernel slow spills 64 bytes of registers",
		kernel + "//mock: serialises": "cuda/test.cu for sm_90a: wgmma is serialised: ptxas info    : (C7511)",
	} {
		c := testCompiler(t)
		_, err := c.Compile(Source{"cuda/test.cu", text}, "sm_90a")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if kept, _ := filepath.Glob(filepath.Join(c.Cache, "*")); len(kept) > 0 {
			t.Errorf("kept %v", kept)
		}
	}
	testMock.Fail("nvrtcCompileProgram", 1, 7)
	var e *Error
	if _, err := testCompiler(t).Compile(testSource, "sm_90a"); !errors.As(err, &e) || !strings.Contains(e.Remedy, "libnvrtc-builtins has to lie beside") {
		t.Errorf("got %v", err)
	}
}

// The log of NVRTC 13.0.88 for three kernels, one with an array on the stack.
const ptxasLog = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1cILi3EEvPf' for 'sm_80'
ptxas info    : Function properties for _Z1cILi3EEvPf
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compile time = 1.353 ms
ptxas info    : Compiling entry function 'b' for 'sm_80'
ptxas info    : Function properties for b
ptxas         .     800 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 800 bytes cumulative stack size, 364 bytes cmem[0]
ptxas info    : Compiling entry function 'a' for 'sm_80'
ptxas info    : Function properties for a
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 512 bytes smem, 364 bytes cmem[0]
`

func TestParseResources(t *testing.T) {
	want := []Resources{
		{Kernel: "_Z1cILi3EEvPf", Registers: 8},
		{Kernel: "b", Registers: 40, Stack: 800, SpillStores: 24, SpillLoads: 32, Barriers: 1},
		{Kernel: "a", Registers: 10, Shared: 512, Barriers: 1},
	}
	got := parseResources(ptxasLog)
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
	if got := parseResources("nothing"); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}
