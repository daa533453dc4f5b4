// Package rmsnorm normalises rows by their root mean square.
package rmsnorm

import (
	"fmt"

	"caper/engine"
)

// Forward returns every row of x [N, H] divided by its root mean square,
// (mean x^2 + eps)^1/2, and multiplied element by element by the gain: w [1, H], or
// 1 + w when offset is set. Qwen3 stores w itself, Qwen3.5 its distance from 1.
func Forward(t *engine.Tape, x, w *engine.Tensor, eps float64, offset bool) *engine.Tensor {
	if w.Rows != 1 || w.Cols != x.Cols {
		panic(fmt.Sprintf("rmsnorm: x %s needs a weight [1 x %d], not %s", x, x.Cols, w))
	}
	o := engine.NewOp[op](t)
	*o = op{x: x, w: w, y: t.NewCheap(x.Rows, x.Cols), eps: eps}
	if offset {
		o.offset = 1
	}
	t.Run(o)
	return o.y
}

type op struct {
	x, w, y     *engine.Tensor
	eps, offset float64 // the gain is offset + w
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
	dy := t.Gradient(o.y)
	if dy == nil {
		return
	}
	dx, dw := t.Accumulate(o.x), t.AddTo(o.w)
	switch {
	case t.Reference():
		specBackward(o, dx, dw, dy)
	case t.CPU():
		cpuBackward(t, o, dx, dw, dy)
	case t.CUDA():
		cudaBackward(t, o, dx, dw, dy)
	default:
		partial(t, o, dw)
	}
}

func (o *op) Cost() engine.Cost {
	in := engine.Tensors{o.x, o.w}
	return engine.Cost{Operator: "rmsnorm", Reads: in, Writes: engine.Tensors{o.y}, Saves: in}
}
