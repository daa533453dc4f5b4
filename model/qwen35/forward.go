package qwen35

import (
	"caper/engine"
	"caper/kernels/attention"
	"caper/kernels/deltagate"
	"caper/kernels/deltarule"
	"caper/kernels/embedding"
	"caper/kernels/gatednorm"
	"caper/kernels/l2norm"
	"caper/kernels/residual"
	"caper/kernels/rmsnorm"
	"caper/kernels/rotary"
	"caper/model/decoder"
)

// l2NormEps is fixed in the reference, whatever rms_norm_eps says.
const l2NormEps = 1e-6

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
	h = residual.Forward(t, h, m.mix(t, m.rmsNorm(t, h, l.inputNorm), i, past))
	return residual.Forward(t, h, l.mlp.Forward(t, m.rmsNorm(t, h, l.postNorm)))
}

// rmsNorm has the gain 1 + w, as all norms here but the one inside a delta net.
func (m *Model) rmsNorm(t *engine.Tape, x, w *engine.Tensor) *engine.Tensor {
	return rmsnorm.Forward(t, x, w, m.config.RMSNormEps, true)
}

func (m *Model) mix(t *engine.Tape, x *engine.Tensor, i int, past decoder.Context) *engine.Tensor {
	if l := &m.layers[i]; l.attention != nil {
		return l.attention.forward(t, x, i, past, &m.config)
	}
	return m.layers[i].delta.forward(t, x, i, past, &m.config)
}

// forward is grouped full attention with per-head norms and partial rotary positions;
// sigmoid(gate) scales the result before the output projection.
func (a *attentionMixer) forward(t *engine.Tape, x *engine.Tensor, i int, past decoder.Context, c *Config) *engine.Tensor {
	queryAndGate := a.query.Forward(t, x) // per head [q D | gate D]
	key := a.key.Forward(t, x)
	value := a.value.Forward(t, x)
	head := rotary.Options{Dim: c.HeadDim, RotaryDims: c.RotaryDims(), Theta: c.Rope.Theta, Eps: c.RMSNormEps, OffsetGain: true}
	head.Heads, head.HeadStride = c.Heads, 2*c.HeadDim
	query := rotary.Forward(t, queryAndGate, a.queryNorm, past.Positions(), head)
	head.Heads, head.HeadStride = c.KVHeads, c.HeadDim
	key = rotary.Forward(t, key, a.keyNorm, past.Positions(), head)
	y := past.Attention(t, i, query, key, value, queryAndGate, attention.Options{
		Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.HeadDim, GateStride: 2 * c.HeadDim, GateOffset: c.HeadDim,
	})
	return a.output.Forward(t, y)
}

// forward is the gated delta net: convolution over q, k and v together, unit-length q
// and k, the gated delta rule, and a norm gated by z.
func (d *deltaMixer) forward(t *engine.Tape, x *engine.Tensor, i int, past decoder.Context, c *Config) *engine.Tensor {
	keys, values := c.KeyHeads*c.KeyDim, c.ValueHeads*c.ValueDim
	qkv := past.Convolution(t, i, d.qkv.Forward(t, x), d.conv)
	query := l2norm.Forward(t, t.Columns(qkv, 0, keys), c.KeyHeads, c.KeyDim, l2NormEps)
	key := l2norm.Forward(t, t.Columns(qkv, keys, keys), c.KeyHeads, c.KeyDim, l2NormEps)
	value := t.Columns(qkv, 2*keys, values)
	g, beta := deltagate.Forward(t, d.a.Forward(t, x), d.b.Forward(t, x), d.aLog, d.dtBias)
	y := past.DeltaRule(t, i, query, key, value, g, beta, deltarule.Options{
		KeyHeads: c.KeyHeads, ValueHeads: c.ValueHeads, KeyDim: c.KeyDim, ValueDim: c.ValueDim,
	})
	z := d.z.Forward(t, x)
	return d.output.Forward(t, gatednorm.Forward(t, y, z, d.norm, c.ValueDim, c.RMSNormEps))
}
