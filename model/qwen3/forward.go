package qwen3

import (
	"caper/engine"
	"caper/kernels/attention"
	"caper/kernels/embedding"
	"caper/kernels/linear"
	"caper/kernels/residual"
	"caper/kernels/rmsnorm"
	"caper/kernels/rotary"
)

// Hidden returns the hidden states [N, H] after the final norm, one row per token of
// the tree.
func (m *Model) Hidden(t *engine.Tape, tree *engine.Tree) *engine.Tensor {
	h := embedding.Forward(t, m.Embedding.Tensor, tree.Tokens)
	for i := range m.layers {
		l := &m.layers[i]
		h = residual.Forward(t, h, l.attention.forward(t, m.rmsNorm(t, h, l.inputNorm), tree, &m.config))
		h = residual.Forward(t, h, l.mlp.Forward(t, m.rmsNorm(t, h, l.postNorm)))
	}
	return m.rmsNorm(t, h, m.norm)
}

// rmsNorm has the gain w, not the 1 + w of Qwen3.5.
func (m *Model) rmsNorm(t *engine.Tape, x, w *engine.Tensor) *engine.Tensor {
	return rmsnorm.Forward(t, x, w, m.config.RMSNormEps, false)
}

// forward is grouped full attention with per-head norms and rotary positions.
func (a *attentionMixer) forward(t *engine.Tape, x *engine.Tensor, tree *engine.Tree, c *Config) *engine.Tensor {
	head := rotary.Options{Dim: c.HeadDim, HeadStride: c.HeadDim, RotaryDims: c.RotaryDims(), Theta: c.Rope.Theta, Eps: c.RMSNormEps}
	head.Heads = c.Heads
	query := rotary.Forward(t, linear.Forward(t, x, a.query), a.queryNorm, tree.Position, head)
	head.Heads = c.KVHeads
	key := rotary.Forward(t, linear.Forward(t, x, a.key), a.keyNorm, tree.Position, head)
	value := linear.Forward(t, x, a.value)
	y := attention.Forward(t, query, key, value, nil, tree, attention.Options{Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.HeadDim})
	return linear.Forward(t, y, a.output)
}
