package qwen3

import (
	"caper/engine"
	"caper/kernels/attention"
	"caper/kernels/embedding"
	"caper/kernels/residual"
	"caper/kernels/rmsnorm"
	"caper/kernels/rotary"
	"caper/model/decoder"
)

// Hidden returns the hidden states [N, H] after the final norm, one row per token of
// the tree.
func (m *Model) Hidden(t *engine.Tape, tree *engine.Tree) *engine.Tensor {
	return m.HiddenIn(t, decoder.InTree(tree))
}

// HiddenIn is Hidden for the tokens of any context.
func (m *Model) HiddenIn(t *engine.Tape, past decoder.Context) *engine.Tensor {
	h := embedding.Forward(t, m.Embedding.Tensor, past.Tokens())
	for i := range m.layers {
		h = t.Layer(func() *engine.Tensor { return m.block(t, h, i, past) })
	}
	return m.rmsNorm(t, h, m.norm)
}

// block is layer i: mixer and MLP, each behind a norm and around it the residual
// stream h [N, H].
func (m *Model) block(t *engine.Tape, h *engine.Tensor, i int, past decoder.Context) *engine.Tensor {
	l := &m.layers[i]
	h = residual.Forward(t, h, l.attention.forward(t, m.rmsNorm(t, h, l.inputNorm), i, past, &m.config))
	return residual.Forward(t, h, l.mlp.Forward(t, m.rmsNorm(t, h, l.postNorm)))
}

// rmsNorm has the gain w, not the 1 + w of Qwen3.5.
func (m *Model) rmsNorm(t *engine.Tape, x, w *engine.Tensor) *engine.Tensor {
	return rmsnorm.Forward(t, x, w, m.config.RMSNormEps, false)
}

// forward is grouped full attention with per-head norms and rotary positions.
func (a *attentionMixer) forward(t *engine.Tape, x *engine.Tensor, i int, past decoder.Context, c *Config) *engine.Tensor {
	head := rotary.Options{Dim: c.HeadDim, HeadStride: c.HeadDim, RotaryDims: c.RotaryDims(), Theta: c.Rope.Theta, Eps: c.RMSNormEps}
	head.Heads = c.Heads
	query := rotary.Forward(t, a.query.Forward(t, x), a.queryNorm, past.Positions(), head)
	head.Heads = c.KVHeads
	key := rotary.Forward(t, a.key.Forward(t, x), a.keyNorm, past.Positions(), head)
	value := a.value.Forward(t, x)
	y := past.Attention(t, i, query, key, value, nil, attention.Options{Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.HeadDim})
	return a.output.Forward(t, y)
}
