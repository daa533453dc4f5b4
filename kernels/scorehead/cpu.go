package scorehead

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape scorehead_forward
// #cgo nocallback scorehead_forward
// #cgo noescape scorehead_backward
// #cgo nocallback scorehead_backward
// #include "scorehead.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

func cpuForward(t *engine.Tape, o *op) {
	a := arguments(o)
	a.y = matrix(o.y)
	C.scorehead_forward((*C.struct_cpu)(t.CPURuntime()), a)
}

func cpuBackward(t *engine.Tape, o *op, dhidden, dw, dy *engine.Tensor) {
	a := arguments(o)
	a.dy, a.dhidden, a.dw = matrix(dy), matrix(dhidden), matrix(dw)
	C.scorehead_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

func arguments(o *op) C.struct_scorehead {
	return C.struct_scorehead{
		count: C.int(len(o.rows)), labels: C.int(o.w.Rows), cols: C.int(o.w.Cols),
		rows:   (*C.int32_t)(unsafe.SliceData(o.rows)),
		hidden: matrix(o.hidden), w: matrix(o.w),
	}
}

func matrix(x *engine.Tensor) C.struct_matrix {
	return C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
}
