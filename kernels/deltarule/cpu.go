package deltarule

// #cgo CFLAGS: -O3 -std=gnu11 -Wno-psabi -I${SRCDIR}/../../engine/include
// #cgo LDFLAGS: -lm
// #cgo noescape deltarule_forward
// #cgo nocallback deltarule_forward
// #cgo noescape deltarule_backward
// #cgo nocallback deltarule_backward
// #include "deltarule.h"
import "C"

import (
	"unsafe"

	"caper/engine"
)

const (
	maxDim = C.MAX_DIM
	chunk  = C.CHUNK
	// enoughTasks is how many tasks are made before trees are put in one group: more
	// than most processors have cores, few enough that states stay small.
	enoughTasks = 16
)

func cpuForward(t *engine.Tape, o *op) {
	a := arguments(t, o)
	a.task_states, a.states = forwardStates(t, o)
	C.deltarule_forward(a)
}

func cpuBackward(t *engine.Tape, o *op, dout, dq, dk, dv, dg, dbeta *engine.Tensor) {
	a := arguments(t, o)
	a.dout, a.dq, a.dk, a.dv, a.dg, a.dbeta = matrix(dout), matrix(dq), matrix(dk), matrix(dv), matrix(dg), matrix(dbeta)
	a.path_states, a.task_states, a.states = backwardStates(t, o)
	C.deltarule_backward(a)
}

// extent returns the most segments and the most chunks on a path of the tree.
func extent(tree *engine.Tree) (levels, chunks int) {
	for s := range tree.Start {
		l, c := 0, 0
		for a := int32(s); a >= 0; a = tree.Parent[a] {
			l++
			c += (int(tree.Len[a]) + chunk - 1) / chunk
		}
		levels, chunks = max(levels, l), max(chunks, c)
	}
	return levels, chunks
}

// forwardStates and backwardStates are room for the states that a task keeps for each of
// its value heads: one a level of its trees, and backward one a chunk of a path besides.
func forwardStates(t *engine.Tape, o *op) (each C.int, room *C.float) {
	levels, _ := extent(o.tree)
	return C.int(1 + levels), states(t, o, 1+levels)
}

func backwardStates(t *engine.Tape, o *op) (path, each C.int, room *C.float) {
	levels, chunks := extent(o.tree)
	return C.int(1 + chunks), C.int(1 + chunks + levels), states(t, o, 1+chunks+levels)
}

func states(t *engine.Tape, o *op, each int) *C.float {
	n := groups(o) * o.o.ValueHeads * each
	return (*C.float)(unsafe.SliceData(t.Scratch(n * o.o.KeyDim * o.o.ValueDim)))
}

// groups is into how many tasks the trees are divided for each key head.
func groups(o *op) int {
	trees := 0
	for _, p := range o.tree.Parent {
		if p < 0 {
			trees++
		}
	}
	return max(1, min(trees, enoughTasks/o.o.KeyHeads))
}

func arguments(t *engine.Tape, o *op) C.struct_deltarule {
	return C.struct_deltarule{
		key_heads: C.int(o.o.KeyHeads), value_heads: C.int(o.o.ValueHeads),
		key_dim: C.int(o.o.KeyDim), value_dim: C.int(o.o.ValueDim),
		rows: C.int(o.q.Rows), segments: C.int(len(o.tree.Start)),
		groups: C.int(groups(o)),
		start:  ints(o.tree.Start), len: ints(o.tree.Len), parent: ints(o.tree.Parent),
		q: matrix(o.q), k: matrix(o.k), v: matrix(o.v), g: matrix(o.g), beta: matrix(o.beta), out: matrix(o.out), residuals: matrix(o.residuals),
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
