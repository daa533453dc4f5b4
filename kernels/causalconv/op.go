// Package causalconv is the short convolution in front of the gated delta rule:
// every channel of a token is mixed with the same channel of the few tokens before
// it on its path, then passed through SiLU.
package causalconv

import (
	"fmt"

	"caper/engine"
)

// Forward returns silu(convolution of x with w), [N, C].
//
// x is [N, C]; w is [C, K], its last column the weight of the token itself. The
// K-1 tokens before a token are taken along its path in tree, over several short
// segments if needed; before the start of the sequence there are zeros. K is at
// most 8.
func Forward(t *engine.Tape, x, w *engine.Tensor, tree *engine.Tree) *engine.Tensor {
	if w.Rows != x.Cols || tree.Rows() != x.Rows || w.Cols > maxTaps {
		panic(fmt.Sprintf("causalconv: input %s and weight %s on a tree of %d rows: want [N, C], [C, K <= %d], N rows",
			x, w, tree.Rows(), maxTaps))
	}
	op := engine.NewOp[op](t)
	op.x, op.w, op.tree = x, w, tree
	op.y = t.NewCheap(x.Rows, x.Cols)
	t.Run(op)
	return op.y
}

type op struct {
	x, w, y *engine.Tensor
	tree    *engine.Tree
}

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o.x, o.w, o.y, o.tree)
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
	dx, dw := t.Accumulate(o.x), t.AddTo(o.w)
	switch {
	case t.Reference():
		specBackward(o.x, o.w, dy, dx, dw, o.tree)
	case t.CPU():
		cpuBackward(t, o, dy, dx, dw)
	case t.CUDA():
		cudaBackward(t, o, dy, dx, dw)
	}
}

func (o *op) Cost() engine.Cost {
	in := engine.Tensors{o.x, o.w}
	return engine.Cost{Operator: "causalconv", Reads: in, Writes: engine.Tensors{o.y}, Saves: in}
}
