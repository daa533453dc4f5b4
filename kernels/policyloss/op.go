// Package policyloss is the clipped policy loss of GRPO, DAPO and their kin, with the
// estimate k3 of the divergence from a reference.
package policyloss

import (
	"fmt"

	"caper/engine"
)

// Token is one sampled token.
type Token struct {
	Old       float32 // log-prob under the policy that sampled it
	Reference float32 // log-prob under the reference; read where Options.KL is not 0
	Advantage float32
	Weight    float32 // in the sum; tokens of weight 0 are left out
}

// Options are the loss's constants.
type Options struct {
	// Low and High bound the ratio of the two policies: 1 - Low to 1 + High. Both 0.2 is
	// PPO's clip, High 0.28 DAPO's clip-higher.
	Low, High float64
	// DualClip bounds what a token of negative advantage can cost, in advantages (Ye et
	// al. 2020, arXiv 1912.09729: 3); 0: no bound.
	DualClip float64
	// KL is beta, the weight of k3.
	KL float64
}

// Forward returns the loss, [1, 1], of logProbs [n, 1], the policy's log-probs of the n
// tokens in their order (formula: spec.go). Losses of several micro-batches add up; what
// a mean divides by is in the weights (Normalisation). tokens must stay as they are until
// the tape's backward pass.
func Forward(t *engine.Tape, logProbs *engine.Tensor, tokens []Token, o Options) *engine.Tensor {
	if len(tokens) != logProbs.Rows {
		panic(fmt.Sprintf("policyloss: %d tokens for log-probs %s", len(tokens), logProbs))
	}
	op := engine.NewOp[op](t)
	op.logProbs, op.tokens, op.o = logProbs, tokens, o
	op.loss = t.NewFloat32(1, 1)
	t.Run(op)
	return op.loss
}

type op struct {
	logProbs, loss *engine.Tensor
	tokens         []Token
	o              Options
}

func (o *op) Forward(t *engine.Tape) {
	if t.CUDA() {
		cudaForward(t, o)
		return
	}
	o.loss.Set(0, 0, specForward(o.logProbs, o.tokens, o.o))
}

func (o *op) Backward(t *engine.Tape) {
	g := t.Gradient(o.loss)
	if g == nil {
		return
	}
	d := t.AddTo(o.logProbs)
	switch {
	case d == nil:
	case t.CUDA():
		cudaBackward(t, o, d, g)
	default:
		specBackward(o.logProbs, o.tokens, o.o, g.At(0, 0), d)
	}
}

func (o *op) Cost() engine.Cost {
	in := engine.Tensors{o.logProbs}
	return engine.Cost{Operator: "policyloss", Reads: in, Writes: engine.Tensors{o.loss}, Saves: in}
}
