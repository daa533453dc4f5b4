package logprob

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape logprob_forward
// #cgo nocallback logprob_forward
// #cgo noescape logprob_backward
// #cgo nocallback logprob_backward
// #include "logprob.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

func cpuForward(t *engine.Tape, o *op) {
	C.logprob_forward((*C.struct_cpu)(t.CPURuntime()), arguments(t, o))
}

func cpuBackward(t *engine.Tape, o *op, dy, dhidden, dhead *engine.Tensor) {
	a := arguments(t, o)
	a.dy, a.dhidden, a.dhead = matrix(dy), matrix(dhidden), matrix(dhead)
	a.dx = gathered(t, o)
	C.logprob_backward((*C.struct_cpu)(t.CPURuntime()), a)
}

// rowBlock is how many pairs are worked on at once.
func (o *op) rowBlock() int { return min(len(o.rows), C.PAIRS) }

func arguments(t *engine.Tape, o *op) C.struct_logprob {
	a := C.struct_logprob{
		pairs: C.int(len(o.rows)), words: C.int(o.head.Rows), width: C.int(o.hidden.Cols),
		rows: ints(o.rows), targets: ints(o.targets),
		hidden: matrix(o.hidden), head: matrix(o.head), y: matrix(o.y), lse: matrix(o.lse),
		kept: matrix(o.logits), x: gathered(t, o),
	}
	if o.logits == nil {
		a.logits = scratch(t, o.rowBlock()*C.WORDS)
	}
	return a
}

// gathered is room for the rows of a block of pairs.
func gathered(t *engine.Tape, o *op) *C.float { return scratch(t, o.rowBlock()*o.hidden.Cols) }

func scratch(t *engine.Tape, n int) *C.float {
	return (*C.float)(unsafe.SliceData(t.Scratch(n)))
}

func matrix(x *engine.Tensor) C.struct_matrix {
	return C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
}

func ints(x []int32) *C.int32_t { return (*C.int32_t)(unsafe.SliceData(x)) }
