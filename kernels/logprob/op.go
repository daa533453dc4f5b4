// Package logprob is the logarithm of the probability that a language model's head
// gives to chosen tokens: head product and softmax in one, without more than a part of
// the logits ever being in memory together.
package logprob

import (
	"fmt"

	"caper/engine"
)

// Forward returns log p(targets[n] | rows[n]), [len(rows), 1], in float32.
//
// hidden is [N, H], after the final norm; head is [V, H]; rows are rows of hidden
// and may repeat: the last token before a branch predicts one token per branch. A
// pair whose gradient is 0 takes no part in the backward pass. rows and targets
// must stay as they are until then.
func Forward(t *engine.Tape, hidden, head *engine.Tensor, rows, targets []int32) *engine.Tensor {
	check(hidden, head, rows, targets)
	op := engine.NewOp[op](t)
	op.hidden, op.head, op.rows, op.targets = hidden, head, rows, targets
	op.y, op.lse = t.NewFloat32(len(rows), 1), t.NewFloat32(len(rows), 1)
	if !t.Inference && len(rows)*head.Rows <= mostKept {
		op.logits = t.NewFloat32(len(rows), head.Rows)
	}
	t.Run(op)
	return op.y
}

// mostKept is how many logits are kept for the backward pass, 64 MiB of them; of more,
// it forms all again. Small models have a quarter less to multiply so; large ones
// would need gigabytes.
var mostKept = 1 << 24

func check(hidden, head *engine.Tensor, rows, targets []int32) {
	if head.Cols != hidden.Cols || len(rows) != len(targets) {
		panic(fmt.Sprintf("logprob: hidden %s, head %s, %d rows, %d targets: want [N, H], [V, H] and as many rows as targets",
			hidden, head, len(rows), len(targets)))
	}
	for n, r := range rows {
		if r < 0 || int(r) >= hidden.Rows || targets[n] < 0 || int(targets[n]) >= head.Rows {
			panic(fmt.Sprintf("logprob: pair %d asks for token %d at row %d of hidden %s, head %s", n, targets[n], r, hidden, head))
		}
	}
}

type op struct {
	hidden, head, y *engine.Tensor
	lse             *engine.Tensor // log of the softmax's denominator, [len(rows), 1]; the specification needs none
	logits          *engine.Tensor // [len(rows), V], nil where they are not kept
	rows, targets   []int32
}

func (o *op) Forward(t *engine.Tape) {
	switch {
	case len(o.rows) == 0:
	case t.Reference():
		specForward(o.hidden, o.head, o.rows, o.targets, o.y)
	case t.CPU():
		cpuForward(t, o)
	case t.CUDA():
		cudaForward(t, o)
	default:
		arguments(t, o)
	}
}

func (o *op) Backward(t *engine.Tape) {
	dy := t.Gradient(o.y)
	if dy == nil || len(o.rows) == 0 {
		return
	}
	dhidden, dhead := t.AddTo(o.hidden), t.AddTo(o.head)
	switch {
	case t.Reference():
		specBackward(o.hidden, o.head, o.rows, o.targets, dy, dhidden, dhead)
	case t.CPU():
		cpuBackward(t, o, dy, dhidden, dhead)
	case t.CUDA():
		cudaBackward(t, o, dy, dhidden, dhead)
	default:
		arguments(t, o)
		gathered(t, o)
	}
}

// Cost counts the logits' product, which the backward pass may have to repeat.
func (o *op) Cost() engine.Cost {
	product := engine.ProductFLOPs(len(o.rows), o.head.Cols, o.head.Rows)
	in := engine.Tensors{o.hidden.Touched(len(o.rows)), o.head}
	c := engine.Cost{
		Operator: "logprob", Reads: in, Writes: engine.Tensors{o.y, o.lse, o.logits}, Saves: append(in, o.lse, o.logits),
		Forward: product, Backward: product * engine.Wanted(in...),
	}
	if o.logits == nil {
		c.Again = product
		c.Backward += c.Again
	}
	return c
}
