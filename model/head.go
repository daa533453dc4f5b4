package model

import (
	"errors"
	"fmt"
	"slices"

	"caper/engine"
	"caper/kernels/embedding"
	"caper/kernels/linear"
	"caper/kernels/scorehead"
	"caper/model/decoder"
	"caper/model/tokenizer"
)

// A reward model's score is read in one of two ways (caper.md 1.4.7):
//
//   - scalar head: a linear map of its own to one number, Hugging Face's sequence
//     classification with one label;
//   - label tokens: the logit that the language-model head gives to a label token such
//     as "+" as the next one, less that of a second such as "-", if there is one. Then
//     sigmoid(score) is the probability of the first among the two.

// HasScores reports whether the model gives scores.
func (m *Model) HasScores() bool { return m.Score != nil || len(m.Config.LabelTokens) > 0 }

// Scores returns a reward model's scores [len(rows), 1] at the given rows of tree.
func (m *Model) Scores(t *engine.Tape, tree *engine.Tree, rows []int32) *engine.Tensor {
	return m.ScoresOf(t, m.Backbone.Hidden(t, tree), rows)
}

// ScoresOf returns the scores [len(rows), 1] at the given rows of hidden, which the
// backbone has returned.
func (m *Model) ScoresOf(t *engine.Tape, hidden *engine.Tensor, rows []int32) *engine.Tensor {
	if m.Score != nil {
		return scorehead.Forward(t, hidden, m.Score.Tensor, rows)
	}
	labels := embedding.Forward(t, m.Head.Tensor, m.labels) // their rows of the head
	logits := scorehead.Forward(t, hidden, labels, rows)
	if len(m.labels) == 1 {
		return logits
	}
	return linear.Forward(t, logits, m.difference.Tensor)
}

// ToReward replaces the language-model head by a scalar score head with random
// weights: the first step from a language model to a reward model.
func (m *Model) ToReward(seed uint64) {
	m.parameters = slices.DeleteFunc(m.parameters, func(p *decoder.Parameter) bool { return p.Name == "lm_head.weight" })
	m.Head = nil
	m.Config.Reward, m.Config.LabelTokens, m.labels = true, nil, nil
	m.addScore(decoder.Random(m.dev, seed))
}

// addScore makes the scalar head in p.
func (m *Model) addScore(p *decoder.Parameters) {
	d := m.Config.Text.Shared()
	score := p.Add("score.weight", decoder.Normal(d.InitRange), 1, d.HiddenSize)
	m.Score = score.Param
	m.parameters = append(slices.Clip(m.parameters), score)
}

// ToLabels makes a language model a reward model that is read at one or two label
// tokens, each of which the tokenizer must have as one token.
func (m *Model) ToLabels(tokens ...string) error {
	if m.Head == nil {
		return errors.New("label tokens need a language-model head, but the model has a score head: start from the language model")
	}
	if m.Tokenizer == nil {
		return errors.New("label tokens need a tokenizer, but the model has no tokenizer.json: copy it from where the weights come from")
	}
	labels, err := labelIDs(tokens, m.Tokenizer)
	if err != nil {
		return err
	}
	m.Config.LabelTokens = tokens
	m.setLabels(labels)
	return nil
}

func (m *Model) setLabels(labels []int32) {
	m.labels = labels
	if len(labels) == 2 {
		m.difference = engine.NewFrozenFloat32(m.dev, "", 1, 2)
		m.difference.Fill(func(_, label int) float64 { return float64(1 - 2*label) })
	}
}

// checkLabels allows one label token or two different ones.
func checkLabels(tokens []string) error {
	if len(tokens) > 2 || slices.Contains(tokens, "") || len(tokens) == 2 && tokens[0] == tokens[1] {
		return fmt.Errorf("label tokens %q: want one, or two different ones", tokens)
	}
	return nil
}

func labelIDs(tokens []string, k *tokenizer.Tokenizer) ([]int32, error) {
	if err := checkLabels(tokens); err != nil {
		return nil, err
	}
	var ids []int32
	for _, token := range tokens {
		encoded := k.EncodeText(token, nil)
		if id, ok := k.ID(token); ok && len(encoded) != 1 { // an added token
			encoded = []int32{id}
		}
		if len(encoded) != 1 {
			return nil, fmt.Errorf("label token %q is %d tokens of the tokenizer: choose one that is one", token, len(encoded))
		}
		ids = append(ids, encoded...)
	}
	return ids, nil
}
