// Package scorehead is the head of a reward model: a linear map of a few rows.
package scorehead

import (
	"fmt"

	"caper/engine"
)

// Forward returns the L scores of the given rows of hidden [N, H]: [len(rows), L]
// for a weight w [L, H]. A row may be named more than once. rows must stay unchanged
// until the tape is reset.
func Forward(t *engine.Tape, hidden, w *engine.Tensor, rows []int32) *engine.Tensor {
	if hidden.Cols != w.Cols {
		panic(fmt.Sprintf("scorehead: hidden %s and weight %s differ in their inner size", hidden, w))
	}
	for _, r := range rows {
		if r < 0 || int(r) >= hidden.Rows {
			panic(fmt.Sprintf("scorehead: row %d is outside %s", r, hidden))
		}
	}
	o := engine.NewOp[op](t)
	*o = op{hidden: hidden, w: w, rows: rows, y: t.NewFloat32(len(rows), w.Rows)}
	t.Run(o)
	return o.y
}

type op struct {
	hidden, w, y *engine.Tensor
	rows         []int32
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
	dhidden, dw := t.AddTo(o.hidden), t.AddTo(o.w)
	switch {
	case t.Reference():
		specBackward(o, dhidden, dw, dy)
	case t.CPU():
		cpuBackward(t, o, dhidden, dw, dy)
	case t.CUDA():
		cudaBackward(t, o, dhidden, dw, dy)
	}
}

func (o *op) Cost() engine.Cost {
	product := engine.ProductFLOPs(len(o.rows), o.w.Cols, o.w.Rows)
	in := engine.Tensors{o.hidden.Touched(len(o.rows)), o.w}
	return engine.Cost{
		Operator: "scorehead", Reads: in, Writes: engine.Tensors{o.y}, Saves: in,
		Forward: product, Backward: product * engine.Wanted(o.hidden, o.w),
	}
}
