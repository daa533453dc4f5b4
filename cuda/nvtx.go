package cuda

// #include <stdint.h>
// #include <stdlib.h>
//
// static uint64_t range_start(void *f, const char *name) { return ((uint64_t (*)(const char *))f)(name); }
// static void range_end(void *f, uint64_t id) { ((void (*)(uint64_t))f)(id); }
import "C"

import (
	"sync"
	"unsafe"
)

var nvtxLibrary = library{
	name: "NVTX (libnvtx3interop.so.1)", variable: "CAPER_NVTX", sonames: []string{"libnvtx3interop.so.1", "libnvToolsExt.so.1"},
	purpose: "names of phases in a profile need",
	remedy:  "pip install nvidia-nvtx==13.0.85",
}

// nvtx holds the two calls; nil where there is no library.
var nvtx = sync.OnceValue(func() (f struct{ start, end unsafe.Pointer }) {
	lib, err := nvtxLibrary.open()
	if err != nil {
		return f
	}
	f.start, f.end = lib.symbol("nvtxRangeStartA"), lib.symbol("nvtxRangeEnd")
	if f.start == nil || f.end == nil {
		f.start, f.end = nil, nil
	}
	return f
})

// Range is a phase of the program that profilers (nsys) show by its name. Ranges nest
// and overlap freely.
type Range C.uint64_t

// StartRange begins a phase. Without NVTX it does nothing.
func StartRange(name string) Range {
	f := nvtx()
	if f.start == nil {
		return 0
	}
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return Range(C.range_start(f.start, text))
}

// End ends the phase, on any goroutine.
func (r Range) End() {
	if f := nvtx(); f.end != nil {
		C.range_end(f.end, C.uint64_t(r))
	}
}
