// Package linear is the linear map without bias.
package linear

import (
	"fmt"

	"caper/engine"
)

// Forward returns x w^T: x is [N, in], w [out, in], the result [N, out].
func Forward(t *engine.Tape, x, w *engine.Tensor) *engine.Tensor {
	if x.Cols != w.Cols {
		panic(fmt.Sprintf("linear: x %s and weight %s differ in their inner size", x, w))
	}
	y := t.New(x.Rows, w.Rows)
	if t.Reference() {
		specForward(y, x, w)
	} else {
		engine.MatMul(t.Device(), y, plain(x), transposed(w), false)
	}
	o := engine.NewOp[op](t)
	*o = op{x, w, y}
	t.Record(o)
	return y
}

type op struct{ x, w, y *engine.Tensor }

func (o *op) Backward(t *engine.Tape) {
	dy := t.Gradient(o.y)
	if dy == nil {
		return
	}
	dx, dw := t.AddTo(o.x), t.AddTo(o.w)
	if t.Reference() {
		specBackward(dx, dw, dy, o.x, o.w)
		return
	}
	if dx != nil {
		engine.MatMul(t.Device(), dx, plain(dy), plain(o.w), true)
	}
	if dw != nil {
		engine.MatMul(t.Device(), dw, transposed(dy), plain(o.x), true)
	}
}

func plain(x *engine.Tensor) engine.Operand { return engine.Operand{Tensor: x} }

func transposed(x *engine.Tensor) engine.Operand {
	return engine.Operand{Tensor: x, Transposed: true}
}
