// Package deltarule is the gated delta rule over packed prefix trees: every value
// head keeps a matrix that maps keys to values, forgets it by a factor at each
// token, corrects what it predicts for the token's key, and is read with the query.
// A segment starts from the state that its parent ended with.
package deltarule

import (
	"fmt"

	"caper/engine"
)

// Options gives the layout of the heads. Value head h reads key head
// h / (ValueHeads/KeyHeads). Dimensions are at most 256.
type Options struct {
	KeyHeads, ValueHeads int
	KeyDim, ValueDim     int
}

// Forward returns the heads' readings, [N, ValueHeads*ValueDim], scaled by
// KeyDim^-1/2.
//
// q and k are [N, KeyHeads*KeyDim] with rows of unit length per head, v is
// [N, ValueHeads*ValueDim]; g, the logarithm of the decay and at most 0, and beta,
// the writing strength, are [N, ValueHeads], on a GPU in float32.
func Forward(t *engine.Tape, q, k, v, g, beta *engine.Tensor, tree *engine.Tree, o Options) *engine.Tensor {
	o.check(q, k, v, g, beta, tree)
	op := engine.NewOp[op](t)
	op.q, op.k, op.v, op.g, op.beta, op.tree, op.o = q, k, v, g, beta, tree, o
	op.out = t.New(v.Rows, v.Cols)
	if !t.Reference() && !t.Inference {
		op.residuals = t.New(v.Rows, v.Cols)
	}
	t.Run(op)
	return op.out
}

func (o Options) check(q, k, v, g, beta *engine.Tensor, tree *engine.Tree) {
	shaped := func(x *engine.Tensor, cols int) bool { return x.Rows == tree.Rows() && x.Cols == cols }
	if o.KeyHeads <= 0 || o.ValueHeads%o.KeyHeads != 0 || o.KeyDim > maxDim || o.ValueDim > maxDim ||
		!shaped(q, o.KeyHeads*o.KeyDim) || !shaped(k, o.KeyHeads*o.KeyDim) || !shaped(v, o.ValueHeads*o.ValueDim) ||
		!shaped(g, o.ValueHeads) || !shaped(beta, o.ValueHeads) {
		panic(fmt.Sprintf("deltarule: q %s, k %s, v %s, g %s, beta %s on a tree of %d rows do not fit %+v (dimensions at most %d)",
			q, k, v, g, beta, tree.Rows(), o, maxDim))
	}
}

type op struct {
	q, k, v, g, beta, out *engine.Tensor
	residuals             *engine.Tensor // what forward leaves for backward; the specification needs none
	tree                  *engine.Tree
	o                     Options
}

func (o *op) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specForward(o.q, o.k, o.v, o.g, o.beta, o.out, o.tree, o.o)
	case t.CPU():
		cpuForward(t, o)
	case t.CUDA():
		cudaForward(t, o)
	default:
		forwardStates(t, o)
	}
}

func (o *op) Backward(t *engine.Tape) {
	dout := t.Gradient(o.out)
	if dout == nil {
		return
	}
	dq, dk, dv, dg, dbeta := t.Accumulate(o.q), t.Accumulate(o.k), t.Accumulate(o.v), t.Accumulate(o.g), t.Accumulate(o.beta)
	switch {
	case t.Reference():
		specBackward(o.q, o.k, o.v, o.g, o.beta, dout, dq, dk, dv, dg, dbeta, o.tree, o.o)
	case t.CPU():
		cpuBackward(t, o, dout, dq, dk, dv, dg, dbeta)
	case t.CUDA():
		cudaBackward(t, o, dout, dq, dk, dv, dg, dbeta)
	default:
		backwardStates(t, o)
	}
}

// Cost counts the products of the chunked form, for each row and value head: with the
// state (KeyDim x ValueDim), with the keys and with the values of a chunk. Forward they
// are 3, 2 and 2; backward 6, 3 and 4, and 2, 2 and 0 to make again what was not kept.
func (o *op) Cost() engine.Cost {
	state := engine.ProductFLOPs(1, o.o.KeyDim, o.o.ValueDim)
	keys, values := engine.ProductFLOPs(1, chunk, o.o.KeyDim), engine.ProductFLOPs(1, chunk, o.o.ValueDim)
	heads := float64(o.q.Rows) * float64(o.o.ValueHeads)
	again := heads * (2*state + 2*keys)
	in := engine.Tensors{o.q, o.k, o.v, o.g, o.beta}
	return engine.Cost{
		Operator: "deltarule", Reads: in, Writes: engine.Tensors{o.out, o.residuals},
		Saves:    engine.Tensors{o.q, o.k, o.g, o.beta, o.residuals},
		Forward:  heads * (3*state + 2*keys + 2*values),
		Backward: heads*(6*state+3*keys+4*values) + again,
		Again:    again,
	}
}
