package l2norm

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape l2norm_forward
// #cgo nocallback l2norm_forward
// #cgo noescape l2norm_backward
// #cgo nocallback l2norm_backward
// #include "l2norm.h"
import "C"

import "caper/engine"

func cpuForward(t *engine.Tape, o *op) {
	a := arguments(o)
	a.y = matrix(o.y)
	C.l2norm_forward((*C.struct_cpu)(t.CPURuntime()), a)
}

func cpuBackward(t *engine.Tape, o *op, dx, dy *engine.Tensor) {
	a := arguments(o)
	a.dx, a.dy = matrix(dx), matrix(dy)
	C.l2norm_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

func arguments(o *op) C.struct_l2norm {
	return C.struct_l2norm{
		rows: C.int(o.x.Rows), heads: C.int(o.heads), dim: C.int(o.dim), eps: C.float(o.eps),
		x: matrix(o.x),
	}
}

func matrix(x *engine.Tensor) C.struct_matrix {
	return C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
}
