package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"caper/engine"
	"caper/model/qwen3"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

const clauseToken, endToken = "<|clause|>", "<|im_end|>"

// rewardModel returns a small clause reward model with a tokenizer of its own.
func rewardModel(t *testing.T, family string, dev engine.Device) *Model {
	t.Helper()
	texts := slices.Values([]string{"SELECT name FROM singer WHERE age > 20", "SELECT count(*) FROM concert GROUP BY year", "question: how many singers?"})
	k, err := tokenizer.Train(texts, tokenizer.TrainOptions{VocabSize: 280, Added: []string{clauseToken, endToken}})
	if err != nil {
		t.Fatal(err)
	}
	c := small(family)
	c.Reward, c.ClauseToken, c.EndToken = true, clauseToken, endToken
	switch text := c.Text.(type) {
	case qwen35.Config:
		text.VocabSize = 288
		c.Text = text
	case qwen3.Config:
		text.VocabSize = 288
		c.Text = text
	}
	m := newModel(t, c, dev)
	if err := m.SetTokenizer(k); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLayout(t *testing.T) {
	m := rewardModel(t, "qwen35", engine.CPU(1))
	l, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	prompt := l.Prompt(nil, "how many? "+endToken) // a marker in the text is no marker
	units := []string{"SELECT " + clauseToken + " ", "FROM singer "}
	s := l.Query(prompt, units)
	clause, _ := m.Tokenizer.ID(clauseToken)
	end, _ := m.Tokenizer.ID(endToken)
	var want []int32
	for i, id := range s.Tokens {
		if id == clause || id == end {
			want = append(want, int32(i))
		}
	}
	if len(s.Marks) != 3 || !slices.Equal(s.Marks, want) {
		t.Errorf("marks %v, markers at %v", s.Marks, want)
	}
	if got := m.Tokenizer.Decode(s.Tokens, true); got != "how many? "+endToken+joinTrimmed(units) {
		t.Errorf("tokens say %q", got)
	}
	// A longer query begins with the tokens of a shorter one: prefixes are shared.
	if longer := l.Query(prompt, append(units, "WHERE 1")); !slices.Equal(longer.Tokens[:len(s.Tokens)-1], s.Tokens[:len(s.Tokens)-1]) {
		t.Error("a further clause changes the tokens of the ones before")
	}
}

// joinTrimmed is what a query's tokens say: the clauses without the space around them.
func joinTrimmed(units []string) string {
	var text strings.Builder
	for _, unit := range units {
		text.WriteString(strings.TrimSpace(unit))
	}
	return text.String()
}

// Scores are those of each query alone, whatever shares its micro-batch.
func TestScorer(t *testing.T) {
	requests := []Request{
		{Prompt: "question: how many singers? ", Queries: [][]string{
			{"SELECT count(*) ", "FROM singer"},
			{"SELECT count(*) ", "FROM singer ", "WHERE age > 20"},
			{"SELECT name ", "FROM singer"},
			{"SELECT count(*) ", "FROM singer"},
		}},
		{Prompt: "nobody asked"},
		{Prompt: "question: years? ", Queries: [][]string{{"SELECT year ", "FROM concert ", "GROUP BY year"}, {}}},
	}
	for _, family := range families {
		m := rewardModel(t, family, engine.Reference())
		for _, budget := range []int{1, 60, 0} {
			t.Run(fmt.Sprintf("%s/%d", family, budget), func(t *testing.T) {
				s, err := NewScorer(m, budget)
				if err != nil {
					t.Fatal(err)
				}
				results := s.Score(requests)
				for i, request := range requests {
					if len(results[i]) != len(request.Queries) {
						t.Fatalf("request %d: %d results", i, len(results[i]))
					}
					for j, units := range request.Queries {
						want := scoreAlone(t, m, request.Prompt, units)
						got := append(slices.Clone(results[i][j].Clauses), results[i][j].End)
						if len(got) != len(units)+1 || !(maxAbs(got, want) < 1e-12) {
							t.Errorf("request %d, query %d: %v, alone %v", i, j, got, want)
						}
					}
				}
				bytes := s.tape.Bytes()
				if s.Score(requests); s.tape.Bytes() != bytes {
					t.Errorf("the tape grew from %d to %d bytes", bytes, s.tape.Bytes())
				}
			})
		}
	}
}

// scoreAlone computes the scores of a query without sharing anything.
func scoreAlone(t *testing.T, m *Model, prompt string, units []string) []float64 {
	tokens := m.Tokenizer.EncodeText(prompt, nil)
	var marks []int32
	for i := range len(units) + 1 {
		marker := endToken
		if i < len(units) {
			tokens, marker = m.Tokenizer.EncodeText(strings.TrimSpace(units[i]), tokens), clauseToken
		}
		id, _ := m.Tokenizer.ID(marker)
		tokens = append(tokens, id)
		marks = append(marks, int32(len(tokens)-1))
	}
	var tree engine.Tree
	tree.AddSegment(-1, tokens)
	scores := elements(m.Scores(engine.NewTape(m.Device()), &tree, marks), nil)
	if slices.ContainsFunc(scores, func(x float64) bool { return math.IsNaN(x) || x == 0 }) {
		t.Errorf("scores %v", scores)
	}
	return scores
}

func TestScorerNeedsARewardModel(t *testing.T) {
	for want, spoil := range map[string]func(m *Model){
		"no score head":                func(m *Model) { m.Score = nil },
		"no tokenizer.json":            func(m *Model) { m.Tokenizer = nil },
		"caper_end_token":              func(m *Model) { m.Config.EndToken = "" },
		`no token "<|somethingelse|>"`: func(m *Model) { m.Config.ClauseToken = "<|somethingelse|>" },
	} {
		m := rewardModel(t, "qwen35", engine.CPU(1))
		spoil(m)
		if _, err := NewScorer(m, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestTokenizerIsSaved(t *testing.T) {
	m := rewardModel(t, "qwen35", engine.CPU(1))
	dir := t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir, engine.CPU(1))
	if err != nil {
		t.Fatal(err)
	}
	text := "SELECT name FROM singer" + endToken
	if a, b := m.Tokenizer.Encode(text, nil), got.Tokenizer.Encode(text, nil); !slices.Equal(a, b) {
		t.Errorf("%v became %v", a, b)
	}
	c := got.Config.Text.(qwen35.Config)
	c.VocabSize = 20
	got.Config.Text = c
	if err := got.SetTokenizer(m.Tokenizer); err == nil {
		t.Error("a tokenizer larger than the embedding was accepted")
	}
}
