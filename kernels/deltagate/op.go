// Package deltagate turns two projections of a token into what steers the gated
// delta rule: the logarithm of the state's decay, and the writing strength.
package deltagate

import (
	"fmt"

	"caper/engine"
)

// Forward returns g = -exp(aLog) softplus(a + dtBias), at most 0, and beta =
// sigmoid(b), in (0, 1), both [N, H].
//
// a and b are [N, H], one column per value head; aLog and dtBias are [1, H].
func Forward(t *engine.Tape, a, b, aLog, dtBias *engine.Tensor) (g, beta *engine.Tensor) {
	if b.Rows != a.Rows || b.Cols != a.Cols || aLog.Rows != 1 || aLog.Cols != a.Cols || dtBias.Rows != 1 || dtBias.Cols != a.Cols {
		panic(fmt.Sprintf("deltagate: a %s, b %s, aLog %s, dtBias %s: want [N, H] twice and [1, H] twice", a, b, aLog, dtBias))
	}
	op := engine.NewOp[op](t)
	op.a, op.b, op.aLog, op.dtBias = a, b, aLog, dtBias
	op.g, op.beta = t.NewCheapFloat32(a.Rows, a.Cols), t.NewCheapFloat32(a.Rows, a.Cols)
	t.Run(op)
	return op.g, op.beta
}

type op struct {
	a, b, aLog, dtBias, g, beta *engine.Tensor
}

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o.a, o.b, o.aLog, o.dtBias, o.g, o.beta)
	case t.CPU():
		cpuForward(t, o)
	case t.CUDA():
		cudaForward(t, o)
	}
}

func (o *op) Backward(t *engine.Tape) {
	if t.CUDA() {
		if dg, dbeta := t.Gradient(o.g), t.Gradient(o.beta); dg != nil || dbeta != nil {
			cudaBackward(t, o, dg, dbeta)
		}
		return
	}
	if dg := t.Gradient(o.g); dg != nil {
		da, daLog, ddtBias := t.Accumulate(o.a), t.AddTo(o.aLog), t.AddTo(o.dtBias)
		switch {
		case t.Reference():
			specDecayBackward(o.a, o.aLog, o.dtBias, o.g, dg, da, daLog, ddtBias)
		case t.CPU():
			cpuDecayBackward(t, o, dg, da, daLog, ddtBias)
		default:
			partial(t, o)
		}
	}
	if dbeta := t.Gradient(o.beta); dbeta != nil {
		db := t.Accumulate(o.b)
		switch {
		case db == nil:
		case t.Reference():
			specBetaBackward(o.beta, dbeta, db)
		case t.CPU():
			cpuBetaBackward(t, o, dbeta, db)
		}
	}
}

func (o *op) Cost() engine.Cost {
	in, out := engine.Tensors{o.a, o.b, o.aLog, o.dtBias}, engine.Tensors{o.g, o.beta}
	return engine.Cost{Operator: "deltagate", Reads: in, Writes: out, Saves: append(in, o.g)}
}
