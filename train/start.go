package train

import (
	"fmt"
	"iter"

	"caper/data"
	"caper/kernels/adamw"
	"caper/model"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

// start makes the model of a new run: from a folder, or with random weights and a
// vocabulary trained on the tuples.
func (r *prm) start(tuples []data.Tuple) error {
	var err error
	if path := r.config.Model.Path; path != "" {
		r.model, err = model.Load(path, r.device)
	} else {
		r.model, err = r.newModel(tuples)
	}
	if err != nil {
		return err
	}
	if err := r.makeReward(); err != nil {
		return err
	}
	r.moments = adamw.NewState(r.model.Params(), r.model.Decays())
	return nil
}

// makeReward gives a language model a score head and names the tokens at which
// clauses are scored; both are there already in a reward model.
func (r *prm) makeReward() error {
	m := r.model
	if m.Tokenizer == nil {
		return fmt.Errorf("%s: no tokenizer.json", r.config.Model.Path)
	}
	if m.Score == nil {
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
	shape := r.config.Model
	words, err := tokenizer.Train(texts(tuples), tokenizer.TrainOptions{
		VocabSize: shape.VocabularySize, Added: []string{"<|endoftext|>", shape.EndToken, shape.ClauseToken},
	})
	if err != nil {
		return nil, fmt.Errorf("model.vocab_size: %w", err)
	}
	c := qwen35.Defaults()
	c.VocabSize = shape.VocabularySize
	c.HiddenSize, c.IntermediateSize, c.Layers = shape.HiddenSize, shape.IntermediateSize, shape.Layers
	c.Heads, c.KVHeads, c.HeadDim = shape.AttentionHeads, shape.KeyValueHeads, shape.HeadDim
	c.KeyHeads, c.ValueHeads = shape.LinearKeyHeads, shape.LinearValueHeads
	c.KeyDim, c.ValueDim = shape.LinearKeyDim, shape.LinearValueDim
	c.InitRange, c.Tied = shape.InitializerStdDev, true
	if shape.FullAttentionGap < 1 {
		return nil, fmt.Errorf("configuration: model.full_attention_interval = %d: must be above 0", shape.FullAttentionGap)
	}
	c.LayerTypes = qwen35.LayerTypes(shape.Layers, shape.FullAttentionGap)
	m, err := model.New(model.Config{Text: c, Reward: true, ClauseToken: shape.ClauseToken, EndToken: shape.EndToken}, r.device, r.config.Train.Seed)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	freshen(m, c, shape)
	return m, m.SetTokenizer(words)
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
