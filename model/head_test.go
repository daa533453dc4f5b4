package model

import (
	"slices"
	"strings"
	"testing"

	"caper/engine"
)

// The score at label tokens is that of a scalar head with the difference of their rows,
// and so are all gradients.
func TestLabelTokens(t *testing.T) {
	for _, family := range families {
		for _, tokens := range [][]string{{"+", "-"}, {"Y"}} {
			scalar := rewardModel(t, family, engine.Reference())
			c := scalar.Config
			c.Reward = false
			label := newModel(t, c, engine.Reference()) // the same weights: they depend on their names
			if err := label.SetTokenizer(scalar.Tokenizer); err != nil {
				t.Fatal(err)
			}
			if label.HasScores() {
				t.Error("a language model has scores")
			}
			if err := label.ToLabels(tokens...); err != nil {
				t.Fatal(err)
			}
			row := func(token string, j int) float64 {
				id := label.Tokenizer.EncodeText(token, nil)[0]
				return label.Head.At(int(id), j)
			}
			for j := range scalar.Score.Cols {
				x := row(tokens[0], j)
				if len(tokens) == 2 {
					x -= row(tokens[1], j)
				}
				scalar.Score.Set(0, j, x)
			}
			zeroGrads(label)
			zeroGrads(scalar)
			got, want := rewardLoss(label, true), rewardLoss(scalar, true)
			if e := got - want; !(e < 1e-12 && e > -1e-12) {
				t.Errorf("%s %q: %g, scalar head %g", family, tokens, got, want)
			}
			for _, p := range scalar.Params() {
				for _, q := range label.Params() {
					if q.Name == p.Name && !(q == label.Head) {
						if e := relativeL2(elements(q.Grad, nil), elements(p.Grad, nil)); !(e < 1e-9) {
							t.Errorf("%s: gradient differs by %g", p.Name, e)
						}
					}
				}
			}
		}
	}
}

// Label tokens are saved and loaded with the model, and refused where they cannot be read.
func TestLabelTokensAreSaved(t *testing.T) {
	reward := rewardModel(t, "qwen35", engine.CPU(1))
	if err := reward.ToLabels("+", "-"); err == nil || !strings.Contains(err.Error(), "language-model head") {
		t.Errorf("labels of a model with a score head: error %v", err)
	}
	c := reward.Config
	c.Reward = false
	m := newModel(t, c, engine.CPU(1))
	if err := m.ToLabels("+"); err == nil || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("labels without a tokenizer: error %v", err)
	}
	if err := m.SetTokenizer(reward.Tokenizer); err != nil {
		t.Fatal(err)
	}
	for _, tokens := range [][]string{{"żółć"}, {""}, {"+", "+"}, {"a", "b", "c"}} {
		if err := m.ToLabels(tokens...); err == nil || !strings.Contains(err.Error(), "label token") {
			t.Errorf("labels %q: error %v", tokens, err)
		}
	}
	if err := m.ToLabels(endToken, "-"); err != nil { // an added token is one, too
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir, engine.CPU(1), Frozen)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.labels, m.labels) || len(got.labels) != 2 || got.Config.Reward {
		t.Errorf("labels %v came back as %v", m.labels, got.labels)
	}
	if _, err := NewScorer(got, 0); err != nil {
		t.Error(err)
	}
	m.ToReward(1)
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	if got, err = Load(dir, engine.CPU(1)); err != nil || got.Score == nil || got.Config.LabelTokens != nil {
		t.Errorf("a model that was given a score head: %+v, error %v", got.Config, err)
	}
}
