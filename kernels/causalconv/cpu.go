package causalconv

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #include "causalconv.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

const maxTaps = C.MAX_TAPS

func cpuForward(t *engine.Tape, o *op) {
	a := arguments(o)
	a.y, a.ldy = floats(o.y)
	C.causalconv_forward((*C.struct_cpu)(t.CPURuntime()), a)
}

func cpuBackward(t *engine.Tape, o *op, dy, dx, dw *engine.Tensor) {
	a := arguments(o)
	a.dy, a.lddy = floats(dy)
	a.dx, a.lddx = floats(dx)
	a.dw, a.lddw = floats(dw)
	C.causalconv_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

func arguments(o *op) C.struct_causalconv {
	a := C.struct_causalconv{
		channels: C.int(o.x.Cols), taps: C.int(o.w.Cols), segments: C.int(len(o.tree.Start)),
		start: ints(o.tree.Start), len: ints(o.tree.Len), parent: ints(o.tree.Parent),
	}
	a.x, a.ldx = floats(o.x)
	a.w, a.ldw = floats(o.w)
	return a
}

// floats returns the storage and the row stride of x, null when x is nil.
func floats(x *engine.Tensor) (*C.float, C.long) {
	if x == nil {
		return nil, 0
	}
	return (*C.float)(unsafe.SliceData(x.F32)), C.long(x.Stride)
}

func ints(x []int32) *C.int32_t { return (*C.int32_t)(unsafe.SliceData(x)) }
