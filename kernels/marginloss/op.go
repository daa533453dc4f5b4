// Package marginloss is the margin-weighted preference loss of the clause reward
// model.
package marginloss

import (
	"fmt"

	"caper/engine"
)

// Pair is one preference between two scores.
type Pair struct {
	Chosen, Rejected int32   // rows of the scores
	Margin           float32 // what the scores should differ by, times Options.Offset
	Weight           float32 // of the pair in the mean; pairs of weight 0 are left out
}

// Options are the loss's constants.
type Options struct {
	Offset float64 // m: 0 for the weighted loss, 1 for the offset one
	Center float64 // c: pulls the pairs' scores towards opposite signs
	// WeightSum and PairCount are what the two means divide by. 0 stands for the sum
	// of the weights and the number of the pairs given; a step that is cut into
	// micro-batches sets those of the whole step.
	WeightSum float64
	PairCount int
}

// Forward returns the loss, [1, 1]:
//
//	1/sum(Weight) sum Weight (-log sigmoid(s+ - s- - m Margin)) + c mean (s+ + s-)^2
//
// scores is [n, 1]; s+ and s- are the scores in rows Chosen and Rejected of a pair.
// Both means are 0 when there is nothing to average. pairs must stay as they are
// until the tape's backward pass.
func Forward(t *engine.Tape, scores *engine.Tensor, pairs []Pair, o Options) *engine.Tensor {
	for i, p := range pairs {
		if min(p.Chosen, p.Rejected) < 0 || int(max(p.Chosen, p.Rejected)) >= scores.Rows {
			panic(fmt.Sprintf("marginloss: pair %d compares rows %d and %d of scores %s", i, p.Chosen, p.Rejected, scores))
		}
	}
	op := engine.NewOp[op](t)
	op.scores, op.pairs, op.o = scores, pairs, o
	op.loss = t.NewFloat32(1, 1)
	t.Run(op)
	return op.loss
}

type op struct {
	scores, loss *engine.Tensor
	pairs        []Pair
	o            Options
}

func (o *op) Forward(t *engine.Tape) {
	if t.CUDA() {
		cudaForward(t, o)
		return
	}
	o.loss.Set(0, 0, specForward(o.scores, o.pairs, o.o))
}

func (o *op) Backward(t *engine.Tape) {
	g := t.Gradient(o.loss)
	if g == nil {
		return
	}
	ds := t.AddTo(o.scores)
	switch {
	case ds == nil:
	case t.CUDA():
		cudaBackward(t, o, ds, g)
	default:
		specBackward(o.scores, o.pairs, o.o, g.At(0, 0), ds)
	}
}

func (o *op) Cost() engine.Cost {
	in := engine.Tensors{o.scores}
	return engine.Cost{Operator: "marginloss", Reads: in, Writes: engine.Tensors{o.loss}, Saves: in}
}
