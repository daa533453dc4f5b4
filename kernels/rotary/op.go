// Package rotary prepares queries and keys for attention: RMSNorm of each head,
// then a rotation by the token's position.
package rotary

import (
	"fmt"

	"caper/engine"
)

// Options describes the heads and the rotation.
type Options struct {
	// Heads of Dim elements; head h is read at column h*HeadStride of x. HeadStride
	// is Dim, or 2*Dim where a gate follows each head.
	Heads, Dim, HeadStride int
	// RotaryDims leading elements of a head are rotated (even, at most Dim), element
	// j together with j + RotaryDims/2; the rest pass. Angles fall off as powers of
	// Theta.
	RotaryDims int
	Theta      float64
	// Eps and OffsetGain belong to the norm: the gain is w, or 1 + w.
	Eps        float64
	OffsetGain bool
}

// Forward returns the heads of x [N, >= (Heads-1)*HeadStride + Dim], normalised with
// weight w [1, Dim] and rotated by positions [N]: [N, Heads*Dim]. positions must stay
// unchanged until the tape is reset.
func Forward(t *engine.Tape, x, w *engine.Tensor, positions []int32, o Options) *engine.Tensor {
	o.check(x, w, positions)
	c := engine.NewOp[op](t)
	*c = op{Options: o, x: x, w: w, y: t.NewCheap(x.Rows, o.Heads*o.Dim), positions: positions}
	if t.CPU() {
		c.angles = table(o.RotaryDims, o.Theta, positions)
	}
	t.Run(c)
	return c.y
}

func (o Options) check(x, w *engine.Tensor, positions []int32) {
	ok := o.Heads > 0 && o.Dim > 0 && o.Dim <= maxDim && o.HeadStride >= o.Dim &&
		o.RotaryDims >= 0 && o.RotaryDims <= o.Dim && o.RotaryDims%2 == 0 &&
		x.Cols >= (o.Heads-1)*o.HeadStride+o.Dim && w.Rows == 1 && w.Cols == o.Dim && len(positions) == x.Rows
	if !ok {
		panic(fmt.Sprintf("rotary: x %s, w %s and %d positions do not fit %+v (Dim at most %d)", x, w, len(positions), o, maxDim))
	}
	for r, p := range positions {
		if p < 0 {
			panic(fmt.Sprintf("rotary: position %d of row %d is negative", p, r))
		}
	}
}

type op struct {
	Options
	x, w, y   *engine.Tensor
	positions []int32
	angles    []float32 // from table, on the CPU
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
	dx, dw := t.AddTo(o.x), t.AddTo(o.w)
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
	return engine.Cost{Operator: "rotary", Reads: in, Writes: engine.Tensors{o.y}, Saves: in}
}

// offset is what is added to w to give the gain.
func (o Options) offset() float64 {
	if o.OffsetGain {
		return 1
	}
	return 0
}
