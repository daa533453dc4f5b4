// Package attention is softmax attention over a packed prefix tree: a token sees
// the earlier tokens of its own segment and all tokens of the segments above it.
package attention

import (
	"fmt"

	"caper/engine"
)

// Options gives the layout of the heads. Query head h reads key and value head
// h / (Heads/KVHeads).
type Options struct {
	Heads, KVHeads int
	// Dim is the size of a head, at most 256. Scores are scaled by Dim^-1/2.
	Dim int
	// The gate of head h starts at column h*GateStride + GateOffset of the gate
	// tensor: a query projection that lays out [query | gate] per head has stride
	// 2*Dim and offset Dim.
	GateStride, GateOffset int
}

// Forward returns the output of every head, [N, Heads*Dim].
//
// q is [N, Heads*Dim], k and v are [N, KVHeads*Dim]. With a gate, the output is
// multiplied by its sigmoid; gate nil means no gate. No N x N matrix is formed:
// memory beyond the output is one number per row and head.
func Forward(t *engine.Tape, q, k, v, gate *engine.Tensor, tree *engine.Tree, o Options) *engine.Tensor {
	o.check(q, k, v, gate, tree)
	op := engine.NewOp[op](t)
	op.q, op.k, op.v, op.gate, op.tree, op.o = q, k, v, gate, tree, o
	op.y, op.lse = t.New(q.Rows, q.Cols), t.NewFloat32(q.Rows, o.Heads)
	t.Run(op)
	return op.y
}

func (o Options) check(q, k, v, gate *engine.Tensor, tree *engine.Tree) {
	n := tree.Rows()
	ok := o.Dim > 0 && o.Dim <= maxDim && o.KVHeads > 0 && o.Heads%o.KVHeads == 0 && o.Heads/o.KVHeads <= maxGroup &&
		q.Rows == n && q.Cols == o.Heads*o.Dim &&
		k.Rows == n && k.Cols == o.KVHeads*o.Dim && v.Rows == n && v.Cols == k.Cols
	if gate != nil {
		ok = ok && gate.Rows == n && gate.Cols >= (o.Heads-1)*o.GateStride+o.GateOffset+o.Dim
	}
	if !ok {
		panic(fmt.Sprintf("attention: q %s, k %s, v %s, gate %v on a tree of %d rows do not fit %+v (Dim at most %d, %d query heads a key head)",
			q, k, v, gate, n, o, maxDim, maxGroup))
	}
}

type op struct {
	q, k, v, gate, y *engine.Tensor
	lse              *engine.Tensor // logarithm of the softmax's denominator, on a GPU to base 2, [N, Heads]; the specification needs none
	tree             *engine.Tree
	o                Options
}

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o.q, o.k, o.v, o.gate, o.y, o.tree, o.o)
	case t.CPU():
		cpuForward(t, o)
	case t.CUDA():
		cudaForward(t, o)
	}
}

func (o *op) Backward(t *engine.Tape) {
	dy := t.Gradient(o.y)
	if dy == nil {
		return
	}
	dq, dk, dv := t.Accumulate(o.q), t.AddTo(o.k), t.AddTo(o.v)
	var dgate *engine.Tensor
	if o.gate != nil {
		dgate = t.AddTo(o.gate)
	}
	switch {
	case t.Reference():
		specBackward(o.q, o.k, o.v, o.gate, dy, dq, dk, dv, dgate, o.tree, o.o)
	case t.CPU():
		cpuBackward(t, o, dy, dq, dk, dv, dgate)
	case t.CUDA():
		cudaBackward(t, o, dy, dq, dk, dv, dgate)
	}
}

// Cost counts the products of query and key and of weight and value, two for each pair
// of a row and one that it sees. The backward pass has four, and the scores again.
func (o *op) Cost() engine.Cost {
	pairs := 0
	for _, p := range o.tree.Position {
		pairs += int(p) + 1
	}
	product := engine.ProductFLOPs(pairs, o.o.Heads, o.o.Dim)
	in := engine.Tensors{o.q, o.k, o.v, o.gate}
	return engine.Cost{
		Operator: "attention", Reads: in, Writes: engine.Tensors{o.y, o.lse}, Saves: append(in, o.y, o.lse),
		Forward: 2 * product, Backward: 5 * product, Again: product,
	}
}
