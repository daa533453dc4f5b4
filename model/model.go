// Package model holds the networks: decoders of the Qwen3 and Qwen3.5 families with
// a language-model head or a scalar score head, loaded from and saved to folders in
// Hugging Face layout, and the clause reward model's input layout and scorer.
//
// The computation is in the folders qwen35 and qwen3, which have the same three
// files; the operators are in caper/kernels.
package model

import (
	"fmt"
	"slices"

	"caper/engine"
	"caper/model/decoder"
	"caper/model/lora"
	"caper/model/qwen3"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

// Backbone is a decoder without its head.
type Backbone interface {
	// Hidden returns the hidden states [N, H] after the final norm, one row per
	// token of the tree.
	Hidden(t *engine.Tape, tree *engine.Tree) *engine.Tensor
	// HiddenIn is the same for tokens in any context, such as a cache.
	HiddenIn(t *engine.Tape, past decoder.Context) *engine.Tensor
}

// Model is a decoder with its head on one device. It has either Head or Score.
// Scores come from Score, or from a few rows of Head (head.go).
type Model struct {
	Config   Config
	Backbone Backbone
	// Embedding is the table of token embeddings [V, H].
	Embedding *engine.Param
	// Head is the language-model head [V, H]; the embedding itself when tied.
	Head *engine.Param
	// Score is the scalar head [1, H] of a reward model.
	Score *engine.Param
	// Tokenizer is nil when the folder holds none.
	Tokenizer *tokenizer.Tokenizer
	// Adapter is the low-rank adapter on the model's linear maps, nil without.
	Adapter *lora.Adapter

	dev        engine.Device
	parameters []*decoder.Parameter // in the order of the layers, without the adapter's
	linears    []*decoder.Linear
	labels     []int32       // ids of Config.LabelTokens
	difference *engine.Param // [1 -1], see ScoresOf
	// texts are the folder's files that go with the tokenizer (companions), kept for Save.
	texts map[string][]byte
}

// New returns a model with random weights, distributed as transformers does it
// (models/qwen3_5, _init_weights). They depend on seed and on the parameters' names
// alone.
func New(c Config, dev engine.Device, seed uint64) (*Model, error) {
	if err := c.Text.Validate(); err != nil {
		return nil, fmt.Errorf("model configuration: %w", err)
	}
	p := decoder.Random(dev, seed)
	m := build(c, dev, p, p)
	return m, p.Finish()
}

// build makes the model's parameters in p, but the score head in score.
func build(c Config, dev engine.Device, p, score *decoder.Parameters) *Model {
	m := &Model{Config: c, dev: dev}
	switch text := c.Text.(type) {
	case qwen35.Config:
		b := qwen35.New(text, p)
		m.Backbone, m.Embedding = b, b.Embedding
	case qwen3.Config:
		b := qwen3.New(text, p)
		m.Backbone, m.Embedding = b, b.Embedding
	}
	m.linears = p.Linears
	switch d := c.Text.Shared(); {
	case c.Reward:
		m.parameters = p.All
		m.addScore(score)
		return m
	case d.Tied:
		m.Head = m.Embedding
	default:
		m.Head = p.Add("lm_head.weight", decoder.Normal(d.InitRange), d.VocabSize, d.HiddenSize).Param
	}
	m.parameters = p.All
	return m
}

// Weights lists the weights of a model of this configuration as checkpoints have them:
// names and shapes, without elements.
func (c Config) Weights() []*decoder.Parameter {
	p := decoder.Describe()
	return build(c, nil, p, p).parameters
}

// Device returns where the model lives.
func (m *Model) Device() engine.Device { return m.dev }

// Params returns all weights in a fixed order, a tied head once, an adapter's last.
func (m *Model) Params() []*engine.Param {
	var params []*engine.Param
	for _, p := range m.all() {
		params = append(params, p.Param)
	}
	return params
}

// Trainable returns those of Params that have a gradient: all, those of an adapter and
// the score head, or none.
func (m *Model) Trainable() []*engine.Param {
	return slices.DeleteFunc(m.Params(), func(p *engine.Param) bool { return p.Grad == nil })
}

// Decays reports for each of Trainable whether weight decay applies to it: to
// matrices, embedding and head included; not to norms, A_log, dt_bias and convolutions.
func (m *Model) Decays() []bool {
	var decays []bool
	for _, p := range m.all() {
		if p.Grad != nil {
			decays = append(decays, p.Decays())
		}
	}
	return decays
}

func (m *Model) all() []*decoder.Parameter {
	if m.Adapter == nil {
		return m.parameters
	}
	return slices.Concat(m.parameters, m.Adapter.Parameters)
}

// SetTokenizer gives the model a tokenizer. Its ids must fit the embedding.
func (m *Model) SetTokenizer(k *tokenizer.Tokenizer) error {
	if vocab := m.Config.Text.Shared().VocabSize; k.Size() > vocab {
		return fmt.Errorf("the tokenizer has %d ids, the embedding only %d rows (vocab_size): take the tokenizer that belongs to the weights", k.Size(), vocab)
	}
	labels, err := labelIDs(m.Config.LabelTokens, k)
	if err != nil {
		return err
	}
	m.Tokenizer = k
	m.setLabels(labels)
	return nil
}
