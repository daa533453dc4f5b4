// Package swiglu is the gated activation of the feed-forward layer.
package swiglu

import (
	"fmt"

	"caper/engine"
)

// Forward returns silu(gate) * up, element by element. Both are [N, F], and so is
// the result.
func Forward(t *engine.Tape, gate, up *engine.Tensor) *engine.Tensor {
	if gate.Rows != up.Rows || gate.Cols != up.Cols {
		panic(fmt.Sprintf("swiglu: gate %s and up %s differ in shape", gate, up))
	}
	y := t.New(gate.Rows, gate.Cols)
	if t.Reference() {
		specForward(y, gate, up)
	} else {
		cpuForward(t, y, gate, up)
	}
	o := engine.NewOp[op](t)
	*o = op{gate, up, y}
	t.Record(o)
	return y
}

type op struct{ gate, up, y *engine.Tensor }

func (o *op) Backward(t *engine.Tape) {
	dy := t.Gradient(o.y)
	if dy == nil {
		return
	}
	dgate, dup := t.AddTo(o.gate), t.AddTo(o.up)
	if t.Reference() {
		specBackward(dgate, dup, dy, o.gate, o.up)
	} else {
		cpuBackward(t, dgate, dup, dy, o.gate, o.up)
	}
}
