package train

import (
	"iter"

	"caper/data"
	"caper/engine"
	"caper/kernels/adamw"
	"caper/model"
	"caper/model/lora"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

// start makes the model of a new run: from a folder, or with random weights and a
// vocabulary trained on the tuples.
func (r *prm) start(tuples []data.Tuple) error {
	var err error
	if path := r.config.Model.Path; path != "" {
		if err := r.planWeights(); err != nil {
			return err
		}
		r.model, err = model.Load(path, r.device, r.config.loading()...)
	} else {
		r.model, err = r.newModel(tuples)
	}
	if err != nil {
		return err
	}
	if err := r.makeReward(); err != nil {
		return err
	}
	if l := r.config.LoRA; l.Rank > 0 {
		c := lora.Config{Rank: l.Rank, Alpha: l.Alpha, Targets: l.Targets}
		if err := r.model.AddAdapter(c, r.config.Model.Path, r.config.Train.Seed); err != nil {
			return r.config.mistake("lora.targets", "%w", err)
		}
	}
	r.moments = adamw.NewState(r.model.Trainable(), r.model.Decays())
	return nil
}

// loading is how the weights are loaded to start from: without gradients where only an
// adapter is trained.
func (c Config) loading() []model.Option {
	if c.LoRA.Rank > 0 {
		return []model.Option{model.Frozen}
	}
	return nil
}

// makeReward gives a language model scores and names the tokens at which
// clauses are scored; both are there already in a reward model.
func (r *prm) makeReward() error {
	m := r.model
	if m.Tokenizer == nil {
		return r.config.mistake("model.path", "no tokenizer.json in that folder: copy it from where the weights come from")
	}
	switch c := r.config.Model; {
	case m.HasScores():
	case c.Head == headToken:
		if err := m.ToLabels(c.LabelTokens...); err != nil {
			return r.config.mistake("model.label_tokens", "%w", err)
		}
	default:
		m.ToReward(r.config.Train.Seed)
	}
	if m.Config.ClauseToken == "" {
		m.Config.ClauseToken = r.config.Model.ClauseToken
	}
	if m.Config.EndToken == "" {
		m.Config.EndToken = r.config.Model.EndToken
	}
	return nil
}

// newModel makes a Qwen3.5 text model of the configured shape.
func (r *prm) newModel(tuples []data.Tuple) (*model.Model, error) {
	c := r.config.Model
	words, err := tokenizer.Train(texts(tuples), tokenizer.TrainOptions{VocabSize: c.VocabularySize, Added: addedTokens(c)})
	if err != nil {
		return nil, err
	}
	shape := c.shape()
	m, err := model.New(model.Config{Text: shape, Reward: c.Head == headScalar, ClauseToken: c.ClauseToken, EndToken: c.EndToken}, r.host(), r.config.Train.Seed)
	if err != nil {
		return nil, err
	}
	freshen(m, shape, c)
	if err := m.SetTokenizer(words); err != nil || m.Device() == r.device {
		return m, err
	}
	return m.CopyTo(r.device)
}

// host is the device on which initial weights are made, one by one: r's own unless that is a
// GPU.
func (r *prm) host() engine.Device {
	if engine.GPUOf(r.device) != nil {
		return engine.CPU(1)
	}
	return r.device
}

// addedTokens are the tokens of a new vocabulary that no text contains.
func addedTokens(m Model) []string { return []string{"<|endoftext|>", m.EndToken, m.ClauseToken} }

// shape is the new model as its config.json will describe it.
func (m Model) shape() qwen35.Config {
	c := qwen35.Defaults()
	c.VocabSize = m.VocabularySize
	c.HiddenSize, c.IntermediateSize, c.Layers = m.HiddenSize, m.IntermediateSize, m.Layers
	c.Heads, c.KVHeads, c.HeadDim = m.AttentionHeads, m.KeyValueHeads, m.HeadDim
	c.KeyHeads, c.ValueHeads = m.LinearKeyHeads, m.LinearValueHeads
	c.KeyDim, c.ValueDim = m.LinearKeyDim, m.LinearValueDim
	c.InitRange, c.Tied = m.InitializerStdDev, true
	c.LayerTypes = qwen35.LayerTypes(m.Layers, m.FullAttentionGap)
	return c
}

// texts yields what the vocabulary is trained on: each prompt once, and the SQL in
// the pieces in which it will be encoded.
func texts(tuples []data.Tuple) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for i := range tuples {
			t := &tuples[i]
			pieces, opened := prefixUnits(t)
			pieces = append(pieces, opened, t.Chosen, t.Rejected)
			if !seen[t.Prompt] {
				seen[t.Prompt] = true
				pieces = append(pieces, t.Prompt)
			}
			for _, piece := range pieces {
				if !yield(piece) {
					return
				}
			}
		}
	}
}
