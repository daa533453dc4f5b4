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
	o := engine.NewOp[op](t)
	*o = op{x, w, t.NewAs(x, x.Rows, w.Rows)}
	t.Run(o)
	return o.y
}

type op struct{ x, w, y *engine.Tensor }

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o.y, o.x, o.w)
	case t.CPU():
		engine.MatMul(t.Device(), o.y, plain(o.x), transposed(o.w), false)
	case t.CUDA():
		t.GPU().MatMul(o.y, plain(o.x), transposed(o.w), false)
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
		specBackward(dx, dw, dy, o.x, o.w)
	case t.CPU():
		if dx != nil {
			engine.MatMul(t.Device(), dx, plain(dy), plain(o.w), !dx.Fresh())
		}
		if dw != nil {
			engine.MatMul(t.Device(), dw, transposed(dy), plain(o.x), true)
		}
	case t.CUDA():
		cudaBackward(t, o, dx, dw, dy)
	}
}

func (o *op) Cost() engine.Cost {
	product := engine.ProductFLOPs(o.x.Rows, o.x.Cols, o.w.Rows)
	in := engine.Tensors{o.x, o.w}
	return engine.Cost{
		Operator: "linear", Reads: in, Writes: engine.Tensors{o.y}, Saves: in,
		Forward: product, Backward: product * engine.Wanted(in...),
	}
}

func plain(x *engine.Tensor) engine.Operand { return engine.Operand{Tensor: x} }

func transposed(x *engine.Tensor) engine.Operand {
	return engine.Operand{Tensor: x, Transposed: true}
}
