package deltagate

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape deltagate_forward
// #cgo nocallback deltagate_forward
// #cgo noescape deltagate_decay_backward
// #cgo nocallback deltagate_decay_backward
// #cgo noescape deltagate_beta_backward
// #cgo nocallback deltagate_beta_backward
// #include "deltagate.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

func cpuForward(t *engine.Tape, o *op) {
	C.deltagate_forward((*C.struct_cpu)(t.CPURuntime()), arguments(o))
}

func cpuDecayBackward(t *engine.Tape, o *op, dg, da, daLog, ddtBias *engine.Tensor) {
	a := arguments(o)
	a.dg, a.da, a.da_log, a.ddt_bias = matrix(dg), matrix(da), matrix(daLog), matrix(ddtBias)
	a.partial = partial(t, o)
	C.deltagate_decay_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

// partial is room for the blocks' sums that make up the gradients of the vectors.
func partial(t *engine.Tape, o *op) *C.float {
	blocks := (o.a.Rows + C.BLOCK_ROWS - 1) / C.BLOCK_ROWS
	return (*C.float)(unsafe.SliceData(t.Scratch(blocks * 2 * o.a.Cols)))
}

func cpuBetaBackward(t *engine.Tape, o *op, dbeta, db *engine.Tensor) {
	a := arguments(o)
	a.dbeta, a.db = matrix(dbeta), matrix(db)
	C.deltagate_beta_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

func arguments(o *op) C.struct_deltagate {
	return C.struct_deltagate{
		rows: C.int(o.a.Rows), heads: C.int(o.a.Cols),
		a: matrix(o.a), b: matrix(o.b), a_log: matrix(o.aLog), dt_bias: matrix(o.dtBias), g: matrix(o.g), beta: matrix(o.beta),
	}
}

func matrix(x *engine.Tensor) C.struct_matrix {
	m := C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
	if x.Fresh() {
		m.fresh = 1
	}
	return m
}
