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
	sum := t.New(x.Rows, x.Cols)
	if t.Reference() {
		specForward(sum, x, y)
	} else {
		cpuForward(t, sum, x, y)
	}
	o := engine.NewOp[op](t)
	*o = op{x, y, sum}
	t.Record(o)
	return sum
}

type op struct{ x, y, sum *engine.Tensor }

func (o *op) Backward(t *engine.Tape) {
	dsum := t.Gradient(o.sum)
	if dsum == nil {
		return
	}
	dx, dy := t.AddTo(o.x), t.AddTo(o.y)
	if t.Reference() {
		specBackward(dx, dsum)
		specBackward(dy, dsum)
	} else {
		cpuBackward(t, dx, dy, dsum)
	}
}
