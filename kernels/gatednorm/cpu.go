package gatednorm

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape gatednorm_forward
// #cgo nocallback gatednorm_forward
// #cgo noescape gatednorm_backward
// #cgo nocallback gatednorm_backward
// #include "gatednorm.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

func cpuForward(t *engine.Tape, o *op) {
	a := arguments(o)
	a.y = matrix(o.y)
	C.gatednorm_forward((*C.struct_cpu)(t.CPURuntime()), a)
}

func cpuBackward(t *engine.Tape, o *op, dx, dz, dw, dy *engine.Tensor) {
	a := arguments(o)
	a.dy, a.dx, a.dz, a.dw = matrix(dy), matrix(dx), matrix(dz), (*C.float)(dw.Pointer())
	a.partial = partial(t, o, dw)
	C.gatednorm_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

// partial is room for the blocks' sums that make up dw.
func partial(t *engine.Tape, o *op, dw *engine.Tensor) *C.float {
	if dw == nil {
		return nil
	}
	return (*C.float)(unsafe.SliceData(t.Scratch(int(C.row_blocks(C.int(o.x.Rows))) * o.dim)))
}

func arguments(o *op) C.struct_gatednorm {
	return C.struct_gatednorm{
		rows: C.int(o.x.Rows), heads: C.int(o.x.Cols / o.dim), dim: C.int(o.dim), eps: C.float(o.eps),
		x: matrix(o.x), z: matrix(o.z), w: (*C.float)(o.w.Pointer()),
	}
}

func matrix(x *engine.Tensor) C.struct_matrix {
	m := C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
	if x.Fresh() {
		m.fresh = 1
	}
	return m
}
