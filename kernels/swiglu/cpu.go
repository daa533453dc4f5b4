package swiglu

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo noescape swiglu_forward
// #cgo nocallback swiglu_forward
// #cgo noescape swiglu_backward
// #cgo nocallback swiglu_backward
// #include "swiglu.h"
import "C"

import "caper/engine"

func cpuForward(t *engine.Tape, y, gate, up *engine.Tensor) {
	C.swiglu_forward((*C.struct_cpu)(t.CPURuntime()), C.struct_swiglu{
		rows: C.int(y.Rows), cols: C.int(y.Cols),
		gate: matrix(gate), up: matrix(up), y: matrix(y),
	})
}

func cpuBackward(t *engine.Tape, dgate, dup, dy, gate, up *engine.Tensor) {
	C.swiglu_backward((*C.struct_cpu)(t.CPURuntime()), C.struct_swiglu{
		rows: C.int(dy.Rows), cols: C.int(dy.Cols),
		gate: matrix(gate), up: matrix(up), dy: matrix(dy), dgate: matrix(dgate), dup: matrix(dup),
	})
}

func matrix(x *engine.Tensor) C.struct_matrix {
	m := C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
	if x.Fresh() {
		m.fresh = 1
	}
	return m
}
