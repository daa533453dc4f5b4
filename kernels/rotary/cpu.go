package rotary

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape rotary_forward
// #cgo nocallback rotary_forward
// #cgo noescape rotary_backward
// #cgo nocallback rotary_backward
// #include "rotary.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

// maxDim bounds a head: its gradient waits on the stack while its norm is taken.
const maxDim = C.MAX_DIM

func cpuForward(t *engine.Tape, o *op) {
	a := arguments(o)
	a.y = matrix(o.y)
	C.rotary_forward((*C.struct_cpu)(t.CPURuntime()), a)
}

func cpuBackward(t *engine.Tape, o *op, dx, dw, dy *engine.Tensor) {
	a := arguments(o)
	a.dy, a.dx, a.dw = matrix(dy), matrix(dx), (*C.float)(dw.Pointer())
	a.partial = partial(t, o, dw)
	C.rotary_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

// partial is room for the blocks' sums that make up dw.
func partial(t *engine.Tape, o *op, dw *engine.Tensor) *C.float {
	if dw == nil {
		return nil
	}
	return (*C.float)(unsafe.SliceData(t.Scratch(int(C.row_blocks(C.int(o.x.Rows))) * o.Dim)))
}

func arguments(o *op) C.struct_rotary {
	return C.struct_rotary{
		rows: C.int(o.x.Rows), heads: C.int(o.Heads), dim: C.int(o.Dim),
		head_stride: C.int(o.HeadStride), rotary_dims: C.int(o.RotaryDims),
		eps: C.float(o.Eps), offset: C.float(o.offset()),
		positions: (*C.int32_t)(unsafe.SliceData(o.positions)), angles: (*C.float)(unsafe.SliceData(o.angles)),
		x: matrix(o.x), w: (*C.float)(o.w.Pointer()),
	}
}

func matrix(x *engine.Tensor) C.struct_matrix {
	return C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
}
