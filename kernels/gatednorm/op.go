// Package gatednorm is the gated RMSNorm on the output of a gated delta net.
package gatednorm

import (
	"fmt"

	"caper/engine"
)

// Forward normalises each head of dim elements in x [N, heads*dim] by its root mean
// square, multiplies it by w [1, dim], which all heads share, and by silu(z); z and
// the result have the shape of x. The gain is w itself, never 1 + w.
func Forward(t *engine.Tape, x, z, w *engine.Tensor, dim int, eps float64) *engine.Tensor {
	if dim < 1 || x.Cols%dim != 0 || z.Rows != x.Rows || z.Cols != x.Cols || w.Rows != 1 || w.Cols != dim {
		panic(fmt.Sprintf("gatednorm: x %s, z %s and w %s do not fit heads of %d", x, z, w, dim))
	}
	o := engine.NewOp[op](t)
	*o = op{x: x, z: z, w: w, y: t.NewCheap(x.Rows, x.Cols), dim: dim, eps: eps}
	t.Run(o)
	return o.y
}

type op struct {
	x, z, w, y *engine.Tensor
	dim        int
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
	dy := t.Gradient(o.y)
	if dy == nil {
		return
	}
	dx, dz, dw := t.Accumulate(o.x), t.Accumulate(o.z), t.AddTo(o.w)
	switch {
	case t.Reference():
		specBackward(o, dx, dz, dw, dy)
	case t.CPU():
		cpuBackward(t, o, dx, dz, dw, dy)
	case t.CUDA():
		cudaBackward(t, o, dx, dz, dw, dy)
	default:
		partial(t, o, dw)
	}
}

func (o *op) Cost() engine.Cost {
	in := engine.Tensors{o.x, o.z, o.w}
	return engine.Cost{Operator: "gatednorm", Reads: in, Writes: engine.Tensors{o.y}, Saves: in}
}
