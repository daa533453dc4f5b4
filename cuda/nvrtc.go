package cuda

// #include <stdlib.h>
// #include "nvrtc.h"
//
// static nvrtcResult nvrtc_version(int *major, int *minor) { return caper_nvrtc.nvrtcVersion(major, minor); }
// static const char *nvrtc_error(nvrtcResult r) { return caper_nvrtc.nvrtcGetErrorString(r); }
import "C"

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"caper/cuda/dialect"
)

// nvrtcLibrary is the compiler that goes with a driver: a cubin of CUDA 13 does not load
// on a driver of 12, one of 12 loads on both. major is 0 where there is no driver.
func nvrtcLibrary(major int) library {
	l := library{
		name: "NVRTC (libnvrtc.so.13 or .12)", variable: "CAPER_NVRTC", sonames: []string{"libnvrtc.so.13", "libnvrtc.so.12"},
		purpose: "compiling kernels for this GPU needs",
		remedy:  "pip install nvidia-cuda-nvrtc==13.0.88, use a folder of compiled kernels (CAPER_CUBINS)",
	}
	if major == 12 {
		l.name, l.sonames = "NVRTC (libnvrtc.so.12)", l.sonames[1:]
		l.remedy = "pip install nvidia-cuda-nvrtc-cu12==12.9.86, update the driver to CUDA 13"
	}
	return l
}

// nvrtc is the compiler that has been loaded.
type nvrtc struct {
	library *sharedLibrary
	version Version
}

// loadNVRTC opens NVRTC once in the life of the process, the one that suits the driver.
var loadNVRTC = sync.OnceValues(func() (*nvrtc, error) {
	driver, _ := presentDriver()
	lib, err := nvrtcLibrary(driver.Major).open()
	if err != nil {
		return nil, err
	}
	if missing := C.caper_nvrtc_load(lib.handle); missing != nil {
		return nil, fmt.Errorf("%s has no %s; install nvidia-cuda-nvrtc==13.0.88", lib.path, C.GoString(missing))
	}
	preloadBuiltins(lib)
	n := &nvrtc{library: lib}
	var major, minor C.int
	if r := C.nvrtc_version(&major, &minor); r != 0 {
		return nil, nvrtcFailure("nvrtcVersion", r, lib.path)
	}
	n.version = Version{int(major), int(minor)}
	return n, nil
})

// preloadBuiltins loads what NVRTC 13.0 looks for at the first compilation and, having no
// path of its own, finds only where it is loaded already. Where there is none, later
// releases find it themselves, and others say so.
func preloadBuiltins(nvrtc *sharedLibrary) {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(nvrtc.path), "libnvrtc-builtins.so.*"))
	for _, path := range found {
		load(path)
	}
}

func nvrtcFailure(call string, code C.nvrtcResult, on string) *Error {
	name := C.GoString(C.nvrtc_error(code))
	e := &Error{Call: call, On: "of " + on, Code: int(code), Name: name}
	if strings.Contains(name, "BUILTIN") {
		e.Remedy = "libnvrtc-builtins has to lie beside libnvrtc: install the whole package nvidia-cuda-nvrtc"
	}
	return e
}

// compile compiles a text and returns the cubin, and what the compiler wrote in any case.
// Several goroutines may compile at once.
func (n *nvrtc) compile(name, text string, headers []dialect.Header, options []string) (image []byte, log string, err error) {
	var strings cStrings
	defer strings.free()
	names, texts := make([]string, len(headers)), make([]string, len(headers))
	for i, h := range headers {
		names[i], texts[i] = h.Name, h.Text
	}
	c := C.caper_compile(strings.one(text), strings.one(name), C.int(len(headers)), strings.list(texts), strings.list(names),
		C.int(len(options)), strings.list(options))
	defer C.free(unsafe.Pointer(c.log))
	defer C.free(unsafe.Pointer(c.cubin))
	if c.log != nil {
		log = C.GoString(c.log)
	}
	if c.failed != nil {
		return nil, log, nvrtcFailure(C.GoString(c.failed), c.code, name)
	}
	return C.GoBytes(unsafe.Pointer(c.cubin), C.int(c.cubin_size)), log, nil
}

// cStrings are texts in C's memory, freed together.
type cStrings []unsafe.Pointer

func (s *cStrings) one(text string) *C.char {
	p := C.CString(text)
	*s = append(*s, unsafe.Pointer(p))
	return p
}

// list returns an array of texts; one element more, so that it is never empty.
func (s *cStrings) list(texts []string) **C.char {
	array := C.calloc(C.size_t(len(texts)+1), C.size_t(unsafe.Sizeof(uintptr(0))))
	*s = append(*s, array)
	for i, text := range texts {
		unsafe.Slice((**C.char)(array), len(texts))[i] = s.one(text)
	}
	return (**C.char)(array)
}

func (s *cStrings) free() {
	for _, p := range *s {
		C.free(p)
	}
}
