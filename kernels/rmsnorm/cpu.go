package rmsnorm

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape rmsnorm_forward
// #cgo nocallback rmsnorm_forward
// #cgo noescape rmsnorm_backward
// #cgo nocallback rmsnorm_backward
// #include "rmsnorm.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

func cpuForward(t *engine.Tape, o *op) {
	a := arguments(o)
	a.y = matrix(o.y)
	C.rmsnorm_forward((*C.struct_cpu)(t.CPURuntime()), a)
}

func cpuBackward(t *engine.Tape, o *op, dx, dw, dy *engine.Tensor) {
	a := arguments(o)
	a.dy, a.dx, a.dw = matrix(dy), matrix(dx), (*C.float)(dw.Pointer())
	a.partial = partial(t, o, dw)
	C.rmsnorm_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

// partial is room for the blocks' sums that make up dw.
func partial(t *engine.Tape, o *op, dw *engine.Tensor) *C.float {
	if dw == nil {
		return nil
	}
	return (*C.float)(unsafe.SliceData(t.Scratch(int(C.row_blocks(C.int(o.x.Rows))) * o.x.Cols)))
}

func arguments(o *op) C.struct_rmsnorm {
	return C.struct_rmsnorm{
		rows: C.int(o.x.Rows), cols: C.int(o.x.Cols),
		eps: C.float(o.eps), offset: C.float(o.offset),
		x: matrix(o.x), w: (*C.float)(o.w.Pointer()),
	}
}

func matrix(x *engine.Tensor) C.struct_matrix {
	m := C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
	if x.Fresh() {
		m.fresh = 1
	}
	return m
}
