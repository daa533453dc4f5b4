// Package residual is the connection around a layer.
package residual

import (
	"fmt"

	"caper/engine"
)

// Forward returns x + y. Both are [N, H], and so is the result.
func Forward(t *engine.Tape, x, y *engine.Tensor) *engine.Tensor {
	if x.Rows != y.Rows || x.Cols != y.Cols {
		panic(fmt.Sprintf("residual: %s and %s differ in shape", x, y))
	}
	o := engine.NewOp[op](t)
	*o = op{x, y, t.New(x.Rows, x.Cols)}
	t.Run(o)
	return o.sum
}

type op struct{ x, y, sum *engine.Tensor }

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o.sum, o.x, o.y)
	case t.CPU():
		cpuForward(t, o.sum, o.x, o.y)
	case t.CUDA():
		cudaForward(t, o.sum, o.x, o.y)
	}
}

func (o *op) Backward(t *engine.Tape) {
	dsum := t.Gradient(o.sum)
	if dsum == nil {
		return
	}
	dx, dy := t.Accumulate(o.x), t.Accumulate(o.y)
	switch {
	case t.Reference():
		specBackward(dx, dsum)
		specBackward(dy, dsum)
	case t.CPU():
		cpuBackward(t, dx, dy, dsum)
	case t.CUDA():
		cudaBackward(t, dx, dy, dsum)
	}
}

func (o *op) Cost() engine.Cost {
	return engine.Cost{Operator: "residual", Reads: engine.Tensors{o.x, o.y}, Writes: engine.Tensors{o.sum}}
}
