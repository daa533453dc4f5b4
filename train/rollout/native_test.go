package rollout

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"caper/engine"
	"caper/kernels/sampling"
	"caper/model"
	"caper/model/generate"
	"caper/model/qwen35"
)

const vocabulary = 50

// policy is a small random model with every kind of layer.
func policy(t testing.TB, seed uint64) *model.Model {
	t.Helper()
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Tied = vocabulary, 24, 20, 2, true
	c.LayerTypes = qwen35.LayerTypes(2, 2)
	c.Heads, c.KVHeads, c.HeadDim = 4, 2, 16
	c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim, c.InitRange = 2, 4, 8, 8, 0.2
	m, err := model.New(model.Config{Text: c}, engine.CPU(2), seed)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func options() Options {
	return Options{Samples: 4, MaxTokens: 12, Rule: sampling.Rule{Temperature: 1}, EndTokens: []int32{3}, Seed: 7}
}

// collect returns the groups by question.
func collect(t testing.TB, s Source, step int, questions ...Question) map[int]Group {
	t.Helper()
	groups := map[int]Group{}
	for g, err := range s.Groups(context.Background(), step, questions) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := groups[g.Question]; ok {
			t.Fatalf("question %d came twice", g.Question)
		}
		groups[g.Question] = g
	}
	return groups
}

func same(a, b Group) bool {
	return a.Question == b.Question && slices.EqualFunc(a.Samples, b.Samples, func(a, b Sample) bool {
		return slices.Equal(a.Tokens, b.Tokens) && slices.Equal(a.LogProbs, b.LogProbs) && a.Finish == b.Finish && a.Version == b.Version
	})
}

func native(t testing.TB, m *model.Model, o Options) *Native {
	t.Helper()
	n, err := NewNative(m, o, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A group is the same bits whatever else is asked in its step, in whatever order.
func TestGroupsAreTheirOwn(t *testing.T) {
	m := policy(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		var questions []Question
		for i := range rapid.IntRange(1, 5).Draw(r, "questions") {
			questions = append(questions, Question{Index: 3 * i, Tokens: rapid.SliceOfN(rapid.Int32Range(0, vocabulary-1), 1, 80).Draw(r, "prompt")})
		}
		step := rapid.IntRange(0, 5).Draw(r, "step")
		o := options()
		o.Memory = generate.Options{Batch: rapid.IntRange(1, 9).Draw(r, "batch")}
		together := collect(t, native(t, m, o), step, questions...)
		slices.Reverse(questions)
		again := collect(t, native(t, m, options()), step, questions...)
		for _, q := range questions {
			alone := collect(t, native(t, m, options()), step, q)[q.Index]
			if len(alone.Samples) != 4 || !same(alone, together[q.Index]) || !same(alone, again[q.Index]) {
				r.Fatalf("question %d: %+v, alone %+v", q.Index, together[q.Index], alone)
			}
		}
	})
}

// Sample i of a group is what it is however many others are asked for.
func TestGroupIsItsSingles(t *testing.T) {
	m := policy(t, 1)
	rapid.Check(t, func(r *rapid.T) {
		q := Question{Index: rapid.IntRange(0, 9).Draw(r, "question"), Tokens: rapid.SliceOfN(rapid.Int32Range(0, vocabulary-1), 1, 80).Draw(r, "prompt")}
		o := options()
		o.Samples = rapid.IntRange(1, 9).Draw(r, "samples")
		group := collect(t, native(t, m, o), 2, q)[q.Index].Samples
		for n := range o.Samples {
			o.Samples = n + 1
			fewer := collect(t, native(t, m, o), 2, q)[q.Index].Samples
			if len(fewer) != n+1 || !same(Group{Samples: fewer}, Group{Samples: group[:n+1]}) {
				r.Fatalf("sample %d of %d: %+v, want %+v", n, len(group), fewer, group)
			}
		}
	})
}

// Steps, questions and seeds draw different samples of one prompt; the same three the
// same ones.
func TestRandomNumbersAreKeyed(t *testing.T) {
	m := policy(t, 1)
	prompt := []int32{5, 6, 7}
	draw := func(seed uint64, step, index int) Group {
		o := options()
		o.Seed = seed
		g := collect(t, native(t, m, o), step, Question{Index: index, Tokens: prompt})[index]
		g.Question = 0
		return g
	}
	first := draw(7, 1, 2)
	if !same(first, draw(7, 1, 2)) {
		t.Error("the same keys give other samples")
	}
	for _, other := range []Group{draw(8, 1, 2), draw(7, 2, 2), draw(7, 1, 3), draw(7, 2, 1)} {
		if same(first, other) {
			t.Errorf("other keys give the same samples: %+v", other)
		}
	}
}

// What the trainer changes, the sampler sees, under the step's number.
func TestUpdateIsSeen(t *testing.T) {
	m, other := policy(t, 1), policy(t, 2)
	n := native(t, m, options())
	question := Question{Index: 4, Tokens: []int32{8, 9, 10, 11}}
	before := collect(t, n, 1, question)[4]
	params := other.Params()
	for i, p := range m.Params() {
		values := make([]float32, p.Rows*p.Cols)
		params[i].Read(values)
		p.Write(values)
	}
	if err := n.Update(context.Background(), m, 9); err != nil {
		t.Fatal(err)
	}
	after := collect(t, n, 1, question)[4]
	want := collect(t, native(t, other, options()), 1, question)[4]
	for i := range want.Samples {
		want.Samples[i].Version = 9
	}
	if same(before, after) || !same(after, want) {
		t.Errorf("after the update %+v, want those of the new weights %+v", after, want)
	}
}

// A question that cannot be asked costs its own group; damaged weights their samples.
func TestLostSamples(t *testing.T) {
	m := policy(t, 1)
	o := options()
	o.Memory = generate.Options{Tokens: 256}
	groups := collect(t, native(t, m, o), 1, Question{Index: 0, Tokens: make([]int32, 300)}, Question{Index: 1, Tokens: []int32{5}}, Question{Index: 2})
	if len(groups) != 3 || len(groups[1].Samples) != 4 || groups[1].Lost != nil {
		t.Fatalf("%+v", groups)
	}
	for index, reason := range map[int]string{0: "cache of 256 tokens", 2: "prompt is empty"} {
		g := groups[index]
		if len(g.Samples) != 0 || len(g.Lost) != 1 {
			t.Errorf("question %d: %+v", index, g)
		}
		for told, n := range g.Lost {
			if n != 4 || !strings.Contains(told, reason) {
				t.Errorf("question %d: %q %d times, want 4 times %q", index, told, n, reason)
			}
		}
	}
	m.Embedding.Set(7, 3, math.NaN())
	if g := collect(t, native(t, m, options()), 1, Question{Index: 5, Tokens: []int32{7}})[5]; len(g.Samples) != 0 || g.Lost["logits are not finite"] != 4 {
		t.Errorf("%+v", g)
	}
}

func TestCancelledSampling(t *testing.T) {
	n := native(t, policy(t, 1), options())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	for _, err := range n.Groups(ctx, 1, []Question{{Index: 0, Tokens: []int32{5}}, {Index: 1, Tokens: []int32{6}}}) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("ended with %v", last)
	}
}
