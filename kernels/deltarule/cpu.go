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
	levels, _ := extent(o.tree)
	reserve(t, o, &a, 1+levels)
	C.deltarule_forward(a)
}

func cpuBackward(t *engine.Tape, o *op, dout, dq, dk, dv, dg, dbeta *engine.Tensor) {
	a := arguments(t, o)
	a.dout, a.dq, a.dk, a.dv, a.dg, a.dbeta = matrix(dout), matrix(dq), matrix(dk), matrix(dv), matrix(dg), matrix(dbeta)
	levels, chunks := extent(o.tree)
	a.path_states = C.int(1 + chunks)
	reserve(t, o, &a, 1+chunks+levels)
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

// reserve gives every task n states for each of its value heads.
func reserve(t *engine.Tape, o *op, a *C.struct_deltarule, n int) {
	a.task_states = C.int(n)
	states := int(a.groups) * o.o.ValueHeads * n
	a.states = (*C.float)(&t.Scratch(states * o.o.KeyDim * o.o.ValueDim)[0])
}

func arguments(t *engine.Tape, o *op) C.struct_deltarule {
	trees := 0
	for _, p := range o.tree.Parent {
		if p < 0 {
			trees++
		}
	}
	return C.struct_deltarule{
		key_heads: C.int(o.o.KeyHeads), value_heads: C.int(o.o.ValueHeads),
		key_dim: C.int(o.o.KeyDim), value_dim: C.int(o.o.ValueDim),
		rows: C.int(o.q.Rows), segments: C.int(len(o.tree.Start)),
		groups: C.int(max(1, min(trees, enoughTasks/o.o.KeyHeads))),
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
