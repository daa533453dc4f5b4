package qwen35

import (
	"fmt"
	"math"
	"math/rand/v2"

	"caper/engine"
	"caper/model/decoder"
)

// Model is a Qwen3.5 text model without its head. Shapes are [out, in]; H is the
// hidden size, D the head dimension.
type Model struct {
	Embedding *engine.Param // [V, H]

	config Config
	layers []layer
	norm   *engine.Tensor // [1, H]
}

// layer has one mixer: attention, or delta when attention is nil.
type layer struct {
	inputNorm, postNorm *engine.Tensor // [1, H]
	attention           *attentionMixer
	delta               *deltaMixer
	mlp                 decoder.MLP
}

// attentionMixer is gated full attention. Each head's rows of query are [q D | gate D].
type attentionMixer struct {
	query              *decoder.Linear // [Heads*2D, H]
	key, value         *decoder.Linear // [KVHeads*D, H]
	output             *decoder.Linear // [H, Heads*D]
	queryNorm, keyNorm *engine.Tensor  // [1, D]
}

// deltaMixer is a gated delta net with K = KeyHeads*KeyDim and V = ValueHeads*ValueDim.
type deltaMixer struct {
	qkv          *decoder.Linear // [K + K + V, H]
	z            *decoder.Linear // [V, H]
	b, a         *decoder.Linear // [ValueHeads, H]
	conv         *engine.Tensor  // [K + K + V, ConvWidth]
	aLog, dtBias *engine.Tensor  // [1, ValueHeads]
	norm         *engine.Tensor  // [1, ValueDim]
	output       *decoder.Linear // [H, V]
}

// New makes the model's parameters in p.
func New(c Config, p *decoder.Parameters) *Model {
	m := &Model{config: c, layers: make([]layer, c.Layers)}
	zeroCentred := decoder.Constant(0) // the gain of these norms is 1 + w
	m.Embedding = p.Add("model.embed_tokens.weight", decoder.Normal(c.InitRange), c.VocabSize, c.HiddenSize).Param
	for i := range m.layers {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		l := &m.layers[i]
		l.inputNorm = p.Add(prefix+"input_layernorm.weight", zeroCentred, c.HiddenSize).Tensor
		if c.LayerTypes[i] == decoder.FullAttention {
			l.attention = newAttention(c, p, prefix+"self_attn.")
		} else {
			l.delta = newDelta(c, p, prefix+"linear_attn.")
		}
		l.postNorm = p.Add(prefix+"post_attention_layernorm.weight", zeroCentred, c.HiddenSize).Tensor
		l.mlp = decoder.NewMLP(p, prefix+"mlp.", &c.Config)
	}
	m.norm = p.Add("model.norm.weight", zeroCentred, c.HiddenSize).Tensor
	return m
}

func newAttention(c Config, p *decoder.Parameters, prefix string) *attentionMixer {
	matrix, zeroCentred := decoder.Normal(c.InitRange), decoder.Constant(0)
	return &attentionMixer{
		query:     p.AddLinear(prefix+"q_proj.weight", matrix, c.Heads*2*c.HeadDim, c.HiddenSize),
		key:       p.AddLinear(prefix+"k_proj.weight", matrix, c.KVHeads*c.HeadDim, c.HiddenSize),
		value:     p.AddLinear(prefix+"v_proj.weight", matrix, c.KVHeads*c.HeadDim, c.HiddenSize),
		output:    p.AddLinear(prefix+"o_proj.weight", matrix, c.HiddenSize, c.Heads*c.HeadDim),
		queryNorm: p.Add(prefix+"q_norm.weight", zeroCentred, c.HeadDim).Tensor,
		keyNorm:   p.Add(prefix+"k_norm.weight", zeroCentred, c.HeadDim).Tensor,
	}
}

func newDelta(c Config, p *decoder.Parameters, prefix string) *deltaMixer {
	matrix := decoder.Normal(c.InitRange)
	values := c.ValueHeads * c.ValueDim
	channels := 2*c.KeyHeads*c.KeyDim + values
	return &deltaMixer{
		qkv:    p.AddLinear(prefix+"in_proj_qkv.weight", matrix, channels, c.HiddenSize),
		z:      p.AddLinear(prefix+"in_proj_z.weight", matrix, values, c.HiddenSize),
		b:      p.AddLinear(prefix+"in_proj_b.weight", matrix, c.ValueHeads, c.HiddenSize),
		a:      p.AddLinear(prefix+"in_proj_a.weight", matrix, c.ValueHeads, c.HiddenSize),
		conv:   p.Add(prefix+"conv1d.weight", convTaps(c.ConvWidth), channels, 1, c.ConvWidth).Tensor,
		aLog:   p.Add(prefix+"A_log", decayRate, c.ValueHeads).Tensor,
		dtBias: p.Add(prefix+"dt_bias", decoder.Constant(1), c.ValueHeads).Tensor,
		norm:   p.Add(prefix+"norm.weight", decoder.Constant(1), c.ValueDim).Tensor,
		output: p.AddLinear(prefix+"out_proj.weight", matrix, c.HiddenSize, values),
	}
}

// convTaps is uniform with the variance 1/(3 width), the usual start of a convolution
// with width inputs: matrices of 0.02 here would shrink q, k and v fiftyfold.
func convTaps(width int) decoder.Init {
	limit := 1 / math.Sqrt(float64(width))
	return func(r *rand.Rand) float64 { return limit * (2*r.Float64() - 1) }
}

// decayRate draws A_log = log A with A uniform in (0, 16], away from log 0.
func decayRate(r *rand.Rand) float64 { return math.Log(16 * (1 - r.Float64())) }
