package engine

// #cgo CFLAGS: -O3 -std=gnu11 -I${SRCDIR}/include
// #cgo LDFLAGS: -lm -lpthread
// #include <stdlib.h>
// #include "gemm.h"
// struct cpu *cpu_new(int threads, int bfloat16);
import "C"

import (
	"runtime"
	"unsafe"
)

func newRuntime(threads int, precision Precision) unsafe.Pointer {
	if threads <= 0 {
		threads = runtime.NumCPU()
	}
	rt := C.cpu_new(C.int(threads), bit(precision == BFloat16))
	if rt == nil {
		panic("engine: out of memory while starting the CPU device")
	}
	return unsafe.Pointer(rt)
}

// kernelName names the kernel of matrix products that the process uses.
func kernelName(p Precision) string { return C.GoString(C.gemm_kernel(bit(p == BFloat16), nil).name) }

// kernels names all that this machine can run, best first.
func kernels(p Precision) (names []string) {
	list := C.float32_kernels()
	if p == BFloat16 {
		list = C.bfloat16_kernels()
	}
	for _, k := range unsafe.Slice(list, 8) {
		if k == nil {
			break
		}
		names = append(names, C.GoString(k.name))
	}
	return names
}

// useKernel makes the process use another kernel, for tests: no product may run at the
// same time.
func useKernel(p Precision, name string) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if C.gemm_kernel(bit(p == BFloat16), text) == nil {
		panic("engine: no kernel " + name)
	}
}
