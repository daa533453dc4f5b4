package engine

// #cgo CFLAGS: -O3 -std=gnu11 -I${SRCDIR}/include
// #cgo LDFLAGS: -lm -lpthread
// #include "cpu.h"
// struct cpu *cpu_new(int threads);
import "C"

import (
	"runtime"
	"unsafe"
)

func newRuntime(threads int) unsafe.Pointer {
	if threads <= 0 {
		threads = runtime.NumCPU()
	}
	rt := C.cpu_new(C.int(threads))
	if rt == nil {
		panic("engine: out of memory while starting the CPU device")
	}
	return unsafe.Pointer(rt)
}
