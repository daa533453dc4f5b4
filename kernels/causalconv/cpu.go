package causalconv

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape causalconv_forward
// #cgo nocallback causalconv_forward
// #cgo noescape causalconv_backward
// #cgo nocallback causalconv_backward
// #include "causalconv.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

const maxTaps = C.MAX_TAPS

func cpuForward(t *engine.Tape, o *op) {
	a := arguments(o)
	a.y = matrix(o.y)
	C.causalconv_forward((*C.struct_cpu)(t.CPURuntime()), a)
}

func cpuBackward(t *engine.Tape, o *op, dy, dx, dw *engine.Tensor) {
	a := arguments(o)
	a.dy, a.dx, a.dw = matrix(dy), matrix(dx), matrix(dw)
	C.causalconv_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

func arguments(o *op) C.struct_causalconv {
	return C.struct_causalconv{
		rows: C.int(o.x.Rows), channels: C.int(o.x.Cols), taps: C.int(o.w.Cols), segment: ints(o.tree.Segment),
		start: ints(o.tree.Start), len: ints(o.tree.Len), parent: ints(o.tree.Parent),
		x: matrix(o.x), w: matrix(o.w),
	}
}

func matrix(x *engine.Tensor) C.struct_matrix {
	m := C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
	if x.Fresh() {
		m.fresh = 1
	}
	return m
}

func ints(x []int32) *C.int32_t { return (*C.int32_t)(unsafe.SliceData(x)) }
