// Package lowrank is what an adapter adds to a linear map: a product of two thin
// matrices.
package lowrank

import (
	"fmt"

	"caper/engine"
)

// Add adds scale x a^T b^T to y in place: x is [N, in], a [R, in], b [out, R], y
// [N, out]. y is a linear map's result that no other operator has read yet; its
// gradient goes to both.
func Add(t *engine.Tape, y, x, a, b *engine.Tensor, scale float64) {
	if x.Cols != a.Cols || a.Rows != b.Cols || y.Cols != b.Rows || x.Rows != y.Rows {
		panic(fmt.Sprintf("lowrank: y %s, x %s, a %s, b %s: want [N, out], [N, in], [R, in], [out, R]", y, x, a, b))
	}
	o := engine.NewOp[op](t)
	*o = op{y: y, x: x, a: a, b: b, u: t.New(x.Rows, a.Rows), scale: scale}
	t.Run(o)
}

type op struct {
	y, x, a, b *engine.Tensor
	u          *engine.Tensor // scale x a^T
	scale      float64
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
	dx, da, db := t.AddTo(o.x), t.AddTo(o.a), t.AddTo(o.b)
	switch {
	case t.Reference():
		specBackward(o, dx, da, db, dy)
	case t.CPU():
		cpuBackward(t, o, dx, da, db, dy)
	case t.CUDA():
		cudaBackward(t, o, dx, da, db, dy)
	default:
		gradientOfU(t, o)
	}
}

func (o *op) Cost() engine.Cost {
	down, up := engine.ProductFLOPs(o.x.Rows, o.x.Cols, o.a.Rows), engine.ProductFLOPs(o.x.Rows, o.b.Cols, o.b.Rows)
	return engine.Cost{
		Operator: "lowrank", Reads: engine.Tensors{o.x, o.a, o.b}, Writes: engine.Tensors{o.y, o.u}, Saves: engine.Tensors{o.x, o.a, o.b, o.u},
		Forward: down + up, Backward: down*engine.Wanted(o.x, o.a) + up*(1+engine.Wanted(o.b)),
	}
}
