package decoder

import (
	"caper/engine"
	"caper/kernels/attention"
	"caper/kernels/causalconv"
	"caper/kernels/deltarule"
)

// Context is what the tokens of a batch see of those before them, and the only way in
// which rows of a batch meet: along the paths of a packed tree where whole sequences
// are computed at once (InTree), in a cache where they go on token by token.
type Context interface {
	// Tokens and Positions of the batch, [N].
	Tokens() []int32
	Positions() []int32
	// The operators that look back, in the layer of this number. Arguments and
	// results are those of the packages' Forward.
	Attention(t *engine.Tape, layer int, q, k, v, gate *engine.Tensor, o attention.Options) *engine.Tensor
	Convolution(t *engine.Tape, layer int, x, w *engine.Tensor) *engine.Tensor
	DeltaRule(t *engine.Tape, layer int, q, k, v, g, beta *engine.Tensor, o deltarule.Options) *engine.Tensor
}

// InTree is the context of a packed prefix tree's tokens: what precedes each is in the
// tree.
func InTree(tree *engine.Tree) Context { return inTree{tree} }

type inTree struct{ tree *engine.Tree }

func (c inTree) Tokens() []int32    { return c.tree.Tokens }
func (c inTree) Positions() []int32 { return c.tree.Position }

func (c inTree) Attention(t *engine.Tape, _ int, q, k, v, gate *engine.Tensor, o attention.Options) *engine.Tensor {
	return attention.Forward(t, q, k, v, gate, c.tree, o)
}

func (c inTree) Convolution(t *engine.Tape, _ int, x, w *engine.Tensor) *engine.Tensor {
	return causalconv.Forward(t, x, w, c.tree)
}

func (c inTree) DeltaRule(t *engine.Tape, _ int, q, k, v, g, beta *engine.Tensor, o deltarule.Options) *engine.Tensor {
	return deltarule.Forward(t, q, k, v, g, beta, c.tree, o)
}
