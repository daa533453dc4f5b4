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
	o := engine.NewOp[op](t)
	*o = op{gate, up, t.NewCheap(gate.Rows, gate.Cols)}
	t.Run(o)
	return o.y
}

type op struct{ gate, up, y *engine.Tensor }

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o.y, o.gate, o.up)
	case t.CPU():
		cpuForward(t, o.y, o.gate, o.up)
	case t.CUDA():
		cudaForward(t, o.y, o.gate, o.up)
	}
}

func (o *op) Backward(t *engine.Tape) {
	dy := t.Gradient(o.y)
	if dy == nil {
		return
	}
	dgate, dup := t.Accumulate(o.gate), t.Accumulate(o.up)
	switch {
	case t.Reference():
		specBackward(dgate, dup, dy, o.gate, o.up)
	case t.CPU():
		cpuBackward(t, dgate, dup, dy, o.gate, o.up)
	case t.CUDA():
		cudaBackward(t, dgate, dup, dy, o.gate, o.up)
	}
}

func (o *op) Cost() engine.Cost {
	in := engine.Tensors{o.gate, o.up}
	return engine.Cost{Operator: "swiglu", Reads: in, Writes: engine.Tensors{o.y}, Saves: in}
}
