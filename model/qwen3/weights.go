package qwen3

import (
	"fmt"

	"caper/engine"
	"caper/model/decoder"
)

// Model is a Qwen3 model without its head. Shapes are [out, in]; H is the hidden
// size, D the head dimension.
type Model struct {
	Embedding *engine.Param // [V, H]

	config Config
	layers []layer
	norm   *engine.Tensor // [1, H]
}

type layer struct {
	inputNorm, postNorm *engine.Tensor // [1, H]
	attention           attentionMixer
	mlp                 decoder.MLP
}

type attentionMixer struct {
	query              *decoder.Linear // [Heads*D, H]
	key, value         *decoder.Linear // [KVHeads*D, H]
	output             *decoder.Linear // [H, Heads*D]
	queryNorm, keyNorm *engine.Tensor  // [1, D]
}

// New makes the model's parameters in p.
func New(c Config, p *decoder.Parameters) *Model {
	m := &Model{config: c, layers: make([]layer, c.Layers)}
	one := decoder.Constant(1)
	m.Embedding = p.Add("model.embed_tokens.weight", decoder.Normal(c.InitRange), c.VocabSize, c.HiddenSize).Param
	for i := range m.layers {
		prefix := fmt.Sprintf("model.layers.%d.", i)
		l := &m.layers[i]
		l.inputNorm = p.Add(prefix+"input_layernorm.weight", one, c.HiddenSize).Tensor
		l.attention = newAttention(c, p, prefix+"self_attn.")
		l.postNorm = p.Add(prefix+"post_attention_layernorm.weight", one, c.HiddenSize).Tensor
		l.mlp = decoder.NewMLP(p, prefix+"mlp.", &c.Config)
	}
	m.norm = p.Add("model.norm.weight", one, c.HiddenSize).Tensor
	return m
}

func newAttention(c Config, p *decoder.Parameters, prefix string) attentionMixer {
	matrix, one := decoder.Normal(c.InitRange), decoder.Constant(1)
	return attentionMixer{
		query:     p.AddLinear(prefix+"q_proj.weight", matrix, c.Heads*c.HeadDim, c.HiddenSize),
		key:       p.AddLinear(prefix+"k_proj.weight", matrix, c.KVHeads*c.HeadDim, c.HiddenSize),
		value:     p.AddLinear(prefix+"v_proj.weight", matrix, c.KVHeads*c.HeadDim, c.HiddenSize),
		output:    p.AddLinear(prefix+"o_proj.weight", matrix, c.HiddenSize, c.Heads*c.HeadDim),
		queryNorm: p.Add(prefix+"q_norm.weight", one, c.HeadDim).Tensor,
		keyNorm:   p.Add(prefix+"k_norm.weight", one, c.HeadDim).Tensor,
	}
}
