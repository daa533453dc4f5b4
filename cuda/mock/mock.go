// Package mock stands in for NVIDIA's libraries where there is no GPU. It builds, with
// gcc, one shared library that exports the calls of libcuda, NVRTC and cuBLASLt that
// package cuda makes, and points package cuda to it. Memory is the processor's; kernels
// are those of package emulator, launched by name; a graph does again what was captured.
// So everything above package cuda runs "on CUDA" in tests, whole training steps
// included.
//
// Work in streams is done only when it is waited for: who reads a result too early reads
// NaN. Every call is checked as the driver checks it, can be written down, and can be
// made to fail.
//
//	m, err := mock.Start()                 // before the first call of package cuda
//	err = m.AddKernels(library.Path)       // of emulator.Build
//	gpu, err := cuda.Open(0)
package mock

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdint.h>
// #include <stdlib.h>
//
// static void fail(void *f, const char *call, int nth, int code) { ((void (*)(const char *, int, int))f)(call, nth, code); }
// static void call(void *f) { ((void (*)(void))f)(); }
// static char *text(void *f) { return ((char *(*)(void))f)(); }
// static void set(void *f, int version, int capability) { ((void (*)(int, int))f)(version, capability); }
// static void limit(void *f, size_t bytes) { ((void (*)(size_t))f)(bytes); }
// static void order(void *f, uint64_t seed) { ((void (*)(uint64_t))f)(seed); }
// static int add(void *f, const char *path) { return ((int (*)(const char *))f)(path); }
import "C"

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Mock is the library, as tests steer it. There is one in a process.
type Mock struct {
	Path   string
	handle unsafe.Pointer
}

// ErrNoCompiler is wrapped by Start's error where the mock cannot be built.
var ErrNoCompiler = errors.New("the mock of libcuda needs gcc and its own source files")

// Start builds the mock, unless it was built before, and makes package cuda use it in
// this process and those it starts, with a cache of cubins beside. It has to come before
// package cuda's first call.
var Start = sync.OnceValues(func() (*Mock, error) {
	path, err := build()
	if err != nil {
		return nil, err
	}
	for _, variable := range []string{"CAPER_CUDA_DRIVER", "CAPER_NVRTC", "CAPER_CUBLASLT"} {
		os.Setenv(variable, path)
	}
	os.Setenv("CAPER_CACHE", path+".cubins") // no card may come to find them
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	m := &Mock{Path: path, handle: C.dlopen(text, C.RTLD_NOW|C.RTLD_LOCAL)}
	if m.handle == nil {
		return nil, fmt.Errorf("%s: %s", path, C.GoString(C.dlerror()))
	}
	return m, nil
})

// build compiles the library into the user's cache, under a hash of what it is made of.
func build() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	cuda := filepath.Dir(filepath.Dir(here))
	sources, _ := filepath.Glob(filepath.Join(cuda, "mock/libcuda/*.c"))
	sources = append(sources, filepath.Join(cuda, "emulator/memory.c"))
	headers := []string{"mock/libcuda/mock.h", "driver.h", "calls.h", "emulator/emulator.h", "emulator/memory.h"}
	hash := sha256.New()
	for _, h := range headers {
		sources = append(sources, filepath.Join(cuda, h))
	}
	for _, s := range sources {
		text, err := os.ReadFile(s)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoCompiler, err)
		}
		hash.Write(text)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("folder for the mock of libcuda: %w", err)
	}
	path := filepath.Join(user, "caper", "mock", hex.EncodeToString(hash.Sum(nil))[:32]+".so")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("folder for the mock of libcuda: %w", err)
	}
	return path, compile(cuda, sources[:len(sources)-len(headers)], path)
}

// compile writes the library beside and renames it.
func compile(cuda string, sources []string, path string) error {
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	args := append([]string{"-shared", "-fPIC", "-O1", "-std=gnu11", "-Wall", "-Werror", "-I" + cuda, "-o", temporary}, sources...)
	out, err := exec.Command("gcc", append(args, "-ldl", "-lm", "-lpthread")...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrNoCompiler, err)
	}
	if err != nil {
		return fmt.Errorf("building the mock of libcuda: %w: %s", err, out)
	}
	return os.Rename(temporary, path)
}

// function finds one of the mock's own functions.
func (m *Mock) function(name string) unsafe.Pointer {
	text := C.CString("caper_mock_" + name)
	defer C.free(unsafe.Pointer(text))
	f := C.dlsym(m.handle, text)
	if f == nil {
		panic("mock: no function " + name)
	}
	return f
}

// Fail makes the n-th call of this name from now on, the first being 1, fail with a code
// of its library. Fail("", 0, 0) takes it back.
func (m *Mock) Fail(call string, n, code int) {
	text := C.CString(call)
	defer C.free(unsafe.Pointer(text))
	C.fail(m.function("fail"), text, C.int(n), C.int(code))
}

// Record returns the calls that work makes, one an element: the name, then what tells
// calls apart, such as "cuMemAllocAsync 4096".
func (m *Mock) Record(work func()) []string {
	C.call(m.function("record"))
	work()
	return strings.Split(strings.TrimSpace(m.text("recorded")), "\n")
}

// Alive says what has not been freed: "2 streams, 1 allocations", or nothing.
func (m *Mock) Alive() string { return m.text("alive") }

func (m *Mock) text(name string) string {
	p := C.text(m.function(name))
	defer C.free(unsafe.Pointer(p))
	return C.GoString(p)
}

// Recover takes back that a kernel's mistake lost the GPUs' contexts, as only a new process
// can elsewhere.
func (m *Mock) Recover() { C.call(m.function("recover")) }

// SetVersion sets the driver's CUDA version, 13000 for 13.0, and the GPUs' compute
// capability, 90 for 9.0. It is 13.0 and 9.0 at first.
func (m *Mock) SetVersion(driver, capability int) {
	C.set(m.function("set"), C.int(driver), C.int(capability))
}

// LimitMemory sets how many bytes each GPU has; 0 for the 8 GiB of the beginning.
func (m *Mock) LimitMemory(bytes int) { C.limit(m.function("limit_memory"), C.size_t(bytes)) }

// SetOrder sets the seed of the order in which blocks and threads of later launches run;
// 0 is the natural order.
func (m *Mock) SetOrder(seed uint64) { C.order(m.function("set_order"), C.uint64_t(seed)) }

// AddKernels makes the kernels of a library of emulator.Build known, by its Path. A name
// that came before is replaced.
func (m *Mock) AddKernels(path string) error {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	if C.add(m.function("add_kernels"), text) != 0 {
		return fmt.Errorf("%s is no library of emulated kernels, or one too many", path)
	}
	return nil
}
