package attention

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape attention_forward
// #cgo nocallback attention_forward
// #cgo noescape attention_backward
// #cgo nocallback attention_backward
// #include "attention.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

const (
	maxDim   = C.MAX_DIM
	maxGroup = C.MAX_GROUP
)

func cpuForward(t *engine.Tape, o *op) {
	C.attention_forward(arguments(t, o))
}

func cpuBackward(t *engine.Tape, o *op, dy, dq, dk, dv, dgate *engine.Tensor) {
	a := arguments(t, o)
	a.dy, a.dq, a.dk, a.dv, a.dgate = matrix(dy), matrix(dq), matrix(dk), matrix(dv), matrix(dgate)
	C.attention_backward(a)
}

func arguments(t *engine.Tape, o *op) C.struct_attention {
	return C.struct_attention{
		rows: C.int(o.q.Rows), heads: C.int(o.o.Heads), kv_heads: C.int(o.o.KVHeads), dim: C.int(o.o.Dim),
		gate_stride: C.int(o.o.GateStride), gate_offset: C.int(o.o.GateOffset),
		segments: C.int(len(o.tree.Start)),
		start:    ints(o.tree.Start), len: ints(o.tree.Len), parent: ints(o.tree.Parent), pos: ints(o.tree.Pos),
		segment: ints(o.tree.Segment), position: ints(o.tree.Position),
		q: matrix(o.q), k: matrix(o.k), v: matrix(o.v), gate: matrix(o.gate), y: matrix(o.y), lse: matrix(o.lse),
		cpu: (*C.struct_cpu)(t.CPURuntime()),
	}
}

func matrix(x *engine.Tensor) C.struct_matrix {
	m := C.struct_matrix{data: (*C.float)(x.Pointer()), stride: C.long(x.Pitch())}
	if x.Fresh() {
		m.fresh = 1
	}
	return m
}

func ints(x []int32) *C.int32_t { return (*C.int32_t)(unsafe.SliceData(x)) }
