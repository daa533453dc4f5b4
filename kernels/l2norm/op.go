// Package l2norm scales each head of a row to unit length.
package l2norm

import (
	"fmt"

	"caper/engine"
)

// Forward divides each head of x [N, heads*dim] by (sum x^2 + eps)^1/2, the sum going
// over the head's dim elements. The result has the shape of x.
func Forward(t *engine.Tape, x *engine.Tensor, heads, dim int, eps float64) *engine.Tensor {
	if heads < 1 || dim < 1 || x.Cols != heads*dim {
		panic(fmt.Sprintf("l2norm: %s does not hold %d heads of %d", x, heads, dim))
	}
	o := engine.NewOp[op](t)
	*o = op{x: x, y: t.NewCheap(x.Rows, x.Cols), heads: heads, dim: dim, eps: eps}
	t.Run(o)
	return o.y
}

type op struct {
	x, y       *engine.Tensor
	heads, dim int
	eps        float64
}

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o)
	case t.CPU():
		cpuForward(t, o)
	case t.CUDA():
		cudaForward(t, o)
	}
}

func (o *op) Backward(t *engine.Tape) {
	dy, dx := t.Gradient(o.y), t.AddTo(o.x)
	if dy == nil || dx == nil {
		return
	}
	switch {
	case t.Reference():
		specBackward(o, dx, dy)
	case t.CPU():
		cpuBackward(t, o, dx, dy)
	case t.CUDA():
		cudaBackward(t, o, dx, dy)
	}
}

func (o *op) Cost() engine.Cost {
	in := engine.Tensors{o.x}
	return engine.Cost{Operator: "l2norm", Reads: in, Writes: engine.Tensors{o.y}, Saves: in}
}
