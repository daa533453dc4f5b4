// Package model holds the networks: decoders of the Qwen3 and Qwen3.5 families with
// a language-model head or a scalar score head, loaded from and saved to folders in
// Hugging Face layout, and the clause reward model's input layout and scorer.
//
// The computation is in the folders qwen35 and qwen3, which have the same three
// files; the operators are in caper/kernels.
package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"caper/engine"
	"caper/kernels/scorehead"
	"caper/model/decoder"
	"caper/model/qwen3"
	"caper/model/qwen35"
	"caper/model/safetensors"
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

	dev        engine.Device
	parameters []*decoder.Parameter // in the order of the layers
	// tokenizerConfig is the folder's tokenizer_config.json, kept for Save.
	tokenizerConfig []byte
}

// New returns a model with random weights, distributed as transformers does it
// (models/qwen3_5, _init_weights). They depend on seed and on the parameters' names
// alone.
func New(c Config, dev engine.Device, seed uint64) (*Model, error) {
	if err := c.Text.Validate(); err != nil {
		return nil, fmt.Errorf("model configuration: %w", err)
	}
	p := decoder.Random(dev, seed)
	m := build(c, dev, p)
	return m, p.Finish()
}

// Option changes how Load loads.
type Option func(*loading)

type loading struct{ frozen bool }

// Frozen loads weights that are only read: no memory for gradients.
func Frozen(l *loading) { l.frozen = true }

// Load reads a model folder in Hugging Face layout: config.json, the weights in
// safetensors, and tokenizer.json where there is one. Weights become the device's
// element type whatever the file's is.
func Load(dir string, dev engine.Device, options ...Option) (*Model, error) {
	var l loading
	for _, option := range options {
		option(&l)
	}
	config, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	folder, err := safetensors.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	p, err := decoder.Read(dev, folder, l.frozen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	m := build(config, dev, p)
	if err := p.Finish(); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := m.loadTokenizer(dir); err != nil {
		return nil, err
	}
	return m, nil
}

// build makes the model's parameters in p.
func build(c Config, dev engine.Device, p *decoder.Parameters) *Model {
	m := &Model{Config: c, dev: dev}
	switch text := c.Text.(type) {
	case qwen35.Config:
		b := qwen35.New(text, p)
		m.Backbone, m.Embedding = b, b.Embedding
	case qwen3.Config:
		b := qwen3.New(text, p)
		m.Backbone, m.Embedding = b, b.Embedding
	}
	switch d := c.Text.Shared(); {
	case c.Reward:
		m.Score = addScore(p, d)
	case d.Tied:
		m.Head = m.Embedding
	default:
		m.Head = p.Add("lm_head.weight", decoder.Normal(d.InitRange), d.VocabSize, d.HiddenSize).Param
	}
	m.parameters = p.All
	return m
}

func addScore(p *decoder.Parameters, d decoder.Config) *engine.Param {
	return p.Add("score.weight", decoder.Normal(d.InitRange), 1, d.HiddenSize).Param
}

// ToReward replaces the language-model head by a scalar score head with random
// weights: the first step from a language model to a reward model.
func (m *Model) ToReward(seed uint64) {
	m.parameters = slices.DeleteFunc(m.parameters, func(p *decoder.Parameter) bool { return p.Name == "lm_head.weight" })
	p := decoder.Random(m.dev, seed)
	m.Score = addScore(p, m.Config.Text.Shared())
	m.Head = nil
	m.parameters = append(m.parameters, p.All...)
	m.Config.Reward = true
}

// Scores returns a reward model's scores [len(rows), 1] at the given rows of tree.
func (m *Model) Scores(t *engine.Tape, tree *engine.Tree, rows []int32) *engine.Tensor {
	return scorehead.Forward(t, m.Backbone.Hidden(t, tree), m.Score.Tensor, rows)
}

// Device returns where the model lives.
func (m *Model) Device() engine.Device { return m.dev }

// Params returns all weights in a fixed order, a tied head once.
func (m *Model) Params() []*engine.Param {
	params := make([]*engine.Param, len(m.parameters))
	for i, p := range m.parameters {
		params[i] = p.Param
	}
	return params
}

// Decays reports for each of Params whether weight decay applies to it: to matrices,
// embedding and head included; not to norms, A_log, dt_bias and convolutions.
func (m *Model) Decays() []bool {
	decays := make([]bool, len(m.parameters))
	for i, p := range m.parameters {
		decays[i] = p.Decays()
	}
	return decays
}

// SetTokenizer gives the model a tokenizer. Its ids must fit the embedding.
func (m *Model) SetTokenizer(k *tokenizer.Tokenizer) error {
	if vocab := m.Config.Text.Shared().VocabSize; k.Size() > vocab {
		return fmt.Errorf("the tokenizer has %d ids, the embedding only %d rows (vocab_size): take the tokenizer that belongs to the weights", k.Size(), vocab)
	}
	m.Tokenizer = k
	return nil
}

func (m *Model) loadTokenizer(dir string) error {
	path := filepath.Join(dir, tokenizerName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	k, err := tokenizer.Load(path)
	if err != nil {
		return err
	}
	if err := m.SetTokenizer(k); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	m.tokenizerConfig, err = os.ReadFile(filepath.Join(dir, tokenizerConfigName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}
