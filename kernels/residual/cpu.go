package residual

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape residual_forward
// #cgo nocallback residual_forward
// #cgo noescape residual_backward
// #cgo nocallback residual_backward
// #include "residual.h"
import "C"

import "caper/engine"

func cpuForward(t *engine.Tape, sum, x, y *engine.Tensor) {
	C.residual_forward((*C.struct_cpu)(t.CPURuntime()), C.struct_residual{
		rows: C.int(sum.Rows), cols: C.int(sum.Cols),
		x: matrix(x), y: matrix(y), sum: matrix(sum),
	})
}

func cpuBackward(t *engine.Tape, dx, dy, dsum *engine.Tensor) {
	C.residual_backward((*C.struct_cpu)(t.CPURuntime()), C.struct_residual{
		rows: C.int(dsum.Rows), cols: C.int(dsum.Cols),
		dsum: matrix(dsum), dx: matrix(dx), dy: matrix(dy),
	})
}

func matrix(x *engine.Tensor) C.struct_matrix {
	m := C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
	if x.Fresh() {
		m.fresh = 1
	}
	return m
}
