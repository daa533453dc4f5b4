package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"caper/engine"
	"caper/kernels/sampling"
	"caper/model"
	"caper/model/qwen3"
	"caper/model/qwen35"
	"caper/model/tokenizer"
)

// small returns the configuration of a model of either family with every kind of
// layer. Its weights are large enough that every part of it matters.
func small(family string, vocab int) model.Config {
	if family == "qwen3" {
		c := qwen3.Defaults()
		c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers = vocab, 24, 20, 2
		c.LayerTypes = qwen3.LayerTypes(2)
		c.Heads, c.KVHeads, c.HeadDim, c.InitRange = 4, 2, 8, 0.2
		return model.Config{Text: c}
	}
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Tied = vocab, 24, 20, 3, true
	c.LayerTypes = qwen35.LayerTypes(3, 2)
	c.Heads, c.KVHeads, c.HeadDim = 4, 2, 16
	c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim, c.InitRange = 2, 4, 8, 8, 0.2
	return model.Config{Text: c}
}

var families = []string{"qwen35", "qwen3"}

func newModel(t testing.TB, c model.Config, dev engine.Device) *model.Model {
	t.Helper()
	m, err := model.New(c, dev, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// bytewise is a tokenizer of single bytes and one added token, 256.
func bytewise(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	k, err := tokenizer.Train(slices.Values([]string{"ab"}), tokenizer.TrainOptions{VocabSize: 257, Added: []string{"<|im_end|>"}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newGenerator(t testing.TB, m *model.Model, o Options) *Generator {
	t.Helper()
	g, err := New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func run(t testing.TB, g *Generator, requests ...Request) []Result {
	t.Helper()
	results, err := g.Generate(context.Background(), requests)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// drawRequest draws a request of any kind. Its prompt has lengths around a block.
func drawRequest(t *rapid.T, vocab int) Request {
	n := rapid.SampledFrom([]int{1, 2, 63, 64, 65, 129}).Draw(t, "prompt")
	r := engine.Random(rapid.Uint64Range(0, 3).Draw(t, "tokens"), "prompt", 0, 0)
	prompt := make([]int32, n)
	for i := range prompt {
		prompt[i] = r.Int32N(int32(vocab))
	}
	return Request{
		Prompt: prompt, Samples: rapid.IntRange(0, 5).Draw(t, "samples"),
		MaxTokens: rapid.SampledFrom([]int{1, 2, 5, 30, 70}).Draw(t, "max tokens"),
		Rule: sampling.Rule{
			Temperature: rapid.SampledFrom([]float64{0, 0.5, 1, 3}).Draw(t, "temperature"),
			TopK:        rapid.SampledFrom([]int{0, 3}).Draw(t, "top-k"),
			TopP:        rapid.SampledFrom([]float64{0, 0.8}).Draw(t, "top-p"),
			MinP:        rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "min-p"),
		},
		StopTokens: rapid.SliceOfN(rapid.Int32Range(0, int32(vocab)-1), 0, 2).Draw(t, "stop"),
		Seed:       rapid.Uint64Range(0, 2).Draw(t, "seed"), Stream: rapid.Uint64Range(0, 2).Draw(t, "stream"),
	}
}

// The defining property: whatever else runs, in whatever order requests arrive, with
// any memory that suffices and any number of threads, samples are the same bits as
// those of each request alone.
func TestAnyScheduleGivesTheSame(t *testing.T) {
	const vocab = 40
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			var models []*model.Model
			for threads := 1; threads <= 3; threads++ {
				models = append(models, newModel(t, small(family, vocab), engine.CPU(threads)))
			}
			rapid.Check(t, func(t *rapid.T) {
				requests := make([]Request, rapid.IntRange(1, 6).Draw(t, "requests"))
				for i := range requests {
					requests[i] = drawRequest(t, vocab)
				}
				g, err := New(models[rapid.IntRange(0, 2).Draw(t, "threads")], Options{
					Tokens:  rapid.SampledFrom([]int{5 * 64, 6 * 64, 1000, 10000}).Draw(t, "tokens"),
					Batch:   rapid.IntRange(1, 7).Draw(t, "batch"),
					Prefill: rapid.SampledFrom([]int{64, 128, 1000}).Draw(t, "prefill"),
				})
				if err != nil {
					t.Fatal(err)
				}
				results := make([]Result, len(requests))
				for added, steps := 0, 0; added < len(requests) || g.Pending() > 0; steps++ {
					for added < len(requests) && (g.Pending() == 0 || rapid.Bool().Draw(t, "arrives")) {
						if err := g.Add(requests[added]); err != nil {
							t.Fatal(err)
						}
						added++
					}
					for _, r := range g.Step() {
						results[r.Index] = r
					}
					if steps > 10000 {
						t.Fatal("no end")
					}
				}
				if g.available != g.blocks || len(g.free) != g.blocks || len(g.slots) != g.batch || len(g.prompts) != g.batch {
					t.Fatalf("not given back: %d of %d blocks set aside, %d free, %d and %d slots of %d", g.blocks-g.available, g.blocks, len(g.free), len(g.slots), len(g.prompts), g.batch)
				}
				for i, r := range requests {
					alone := runAlone(t, models[0], r)
					if !slices.EqualFunc(results[i].Samples, alone, sameSample) {
						t.Fatalf("request %d: %v, alone %v", i, results[i].Samples, alone)
					}
				}
			})
		})
	}
}

// runAlone runs each sample of a request as if it were the only one there is.
func runAlone(t *rapid.T, m *model.Model, r Request) []Sample {
	g, err := New(m, Options{Tokens: 400, Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	results, err := g.Generate(context.Background(), []Request{r})
	if err != nil {
		t.Fatal(err)
	}
	return results[0].Samples
}

func sameSample(a, b Sample) bool {
	return slices.Equal(a.Tokens, b.Tokens) && slices.Equal(a.LogProbs, b.LogProbs) && slices.Equal(a.Drawn, b.Drawn) &&
		a.Text == b.Text && a.Finish == b.Finish
}

// The sampler's log-probs are the trainer's.
func TestLogProbsAreTheTrainers(t *testing.T) {
	for _, family := range families {
		m := newModel(t, small(family, 300), engine.CPU(2))
		g := newGenerator(t, m, Options{})
		prompt := make([]int32, 100)
		for i := range prompt {
			prompt[i] = int32(i * i % 300)
		}
		s := run(t, g, Request{Prompt: prompt, Samples: 4, MaxTokens: 150, Rule: sampling.Rule{Temperature: 1}})[0].Samples
		for i, want := range trained(m, prompt, s[0].Tokens, s[1].Tokens, s[2].Tokens, s[3].Tokens) {
			// Sums of a few hundred roundings of 6e-8, amplified by norms.
			if d := apart(s[i].LogProbs, want); !(d <= 2e-5) {
				t.Errorf("%s: sample %d: log-probs differ by %g", family, i, d)
			}
			// At temperature 1 without filters and padding both distributions are one.
			if d := apart(s[i].Drawn, want); !(d <= 2e-5) {
				t.Errorf("%s: sample %d: drawn with log-probs that differ by %g", family, i, d)
			}
		}
	}
}

// Tokens come as often as the model says: the samples of one prompt are independent.
func TestSamplesFollowTheModel(t *testing.T) {
	m := newModel(t, small("qwen35", 7), engine.CPU(2))
	g := newGenerator(t, m, Options{})
	const n = 5000
	counts, p := make([]float64, 7), make([]float64, 7)
	for _, s := range run(t, g, Request{Prompt: []int32{3, 1}, Samples: n, MaxTokens: 2, Rule: sampling.Rule{Temperature: 1}, Seed: 5})[0].Samples {
		counts[s.Tokens[0]]++
		p[s.Tokens[0]] = math.Exp(float64(s.LogProbs[0]))
	}
	for id, c := range counts {
		if deviation := math.Sqrt(n * p[id] * (1 - p[id])); math.Abs(c-n*p[id]) > 5*deviation {
			t.Errorf("token %d came %g times, expected %g within %g", id, c, n*p[id], deviation)
		}
	}
}

// A thousand requests join and leave a small batch, and each gets its own answer.
func TestThousandRequests(t *testing.T) {
	m := newModel(t, small("qwen35", 40), engine.CPU(2))
	g := newGenerator(t, m, Options{Tokens: 600, Batch: 16})
	requests := make([]Request, 1000)
	for i := range requests {
		requests[i] = Request{Prompt: []int32{int32(i % 40), int32(i / 40)}, Samples: 1 + i%2, MaxTokens: 1 + i%9, StopTokens: []int32{0}, Rule: sampling.Rule{Temperature: 1}, Stream: uint64(i)}
	}
	seen := 0
	for r, err := range g.Stream(context.Background(), func(yield func(Request, error) bool) {
		for _, r := range requests {
			if !yield(r, nil) {
				return
			}
		}
	}) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		want := requests[r.Index]
		if len(r.Samples) != want.Samples {
			t.Fatalf("request %d: %d samples, want %d", r.Index, len(r.Samples), want.Samples)
		}
		for _, s := range r.Samples {
			last := s.Tokens[len(s.Tokens)-1]
			if len(s.Tokens) > want.MaxTokens || s.Finish == Length != (last != 0) || s.Finish == StopToken != (last == 0) || slices.Contains(s.Tokens[:len(s.Tokens)-1], 0) {
				t.Fatalf("request %d: %+v", r.Index, s)
			}
		}
	}
	if seen != len(requests) {
		t.Errorf("%d results", seen)
	}
}

// Samples of one prompt share it: a prompt of 640 tokens with 32 samples fits a cache
// of little more.
func TestPromptIsStoredOnce(t *testing.T) {
	m := newModel(t, small("qwen3", 40), engine.CPU(2))
	g := newGenerator(t, m, Options{Tokens: 640 + 32*64, Batch: 32})
	if err := g.Add(Request{Prompt: make([]int32, 640), Samples: 32, MaxTokens: 20, Rule: sampling.Rule{Temperature: 1}}); err != nil {
		t.Fatal(err)
	}
	most := 0
	for g.Pending() > 0 {
		g.Step()
		most = max(most, len(g.running))
	}
	if most != 32 {
		t.Errorf("%d samples ran together, want 32", most)
	}
}

func TestStopTokenAtOnce(t *testing.T) {
	m := newModel(t, small("qwen35", 40), engine.CPU(1))
	g := newGenerator(t, m, Options{})
	first := run(t, g, Request{Prompt: []int32{1, 2}, MaxTokens: 1})[0].Samples[0]
	if len(first.Tokens) != 1 || first.Finish != Length {
		t.Fatalf("one token: %+v", first)
	}
	s := run(t, g, Request{Prompt: []int32{1, 2}, MaxTokens: 9, Samples: 3, StopTokens: first.Tokens})[0].Samples
	for _, s := range s {
		if len(s.Tokens) != 1 || s.Finish != StopToken {
			t.Errorf("end token at once: %+v", s)
		}
	}
}

// The text ends where a stop string begins, wherever tokens end; and a random model's
// broken UTF-8 is text all the same.
func TestStopStrings(t *testing.T) {
	k := bytewise(t)
	m := newModel(t, small("qwen35", k.Size()+5), engine.CPU(2)) // five rows of padding
	if err := m.SetTokenizer(k); err != nil {
		t.Fatal(err)
	}
	g := newGenerator(t, m, Options{})
	ask := Request{Prompt: []int32{1}, Samples: 20, MaxTokens: 60, Rule: sampling.Rule{Temperature: 3}}
	broken := 0
	for i, free := range run(t, g, ask)[0].Samples {
		if !utf8.ValidString(free.Text) || free.Text != k.Decode(free.Tokens, false) {
			t.Fatalf("text %q of %v", free.Text, free.Tokens)
		}
		if strings.Contains(free.Text, "\uFFFD") {
			broken++
		}
		if slices.ContainsFunc(free.Tokens, func(id int32) bool { return int(id) >= k.Size() }) {
			t.Fatalf("padding in %v", free.Tokens)
		}
		// Whole characters: a broken one is only known to be by what follows.
		stop := regexp.MustCompile(`.{5}([ -~]{2})`).FindStringSubmatch(free.Text)[1]
		ask.StopStrings = []string{"never to be seen", stop}
		s := run(t, g, ask)[0].Samples[i]
		want := strings.Index(free.Text, stop)
		if s.Finish != StopString || s.Text != free.Text[:want] || !slices.Equal(s.Tokens, free.Tokens[:len(s.Tokens)]) {
			t.Fatalf("stop at %q: %q (%s), want %q", stop, s.Text, s.Finish, free.Text[:want])
		}
		if shorter := k.Decode(s.Tokens[:len(s.Tokens)-1], false); strings.Contains(shorter, stop) {
			t.Fatalf("stop at %q: a token too many", stop)
		}
		ask.StopStrings = nil
	}
	if broken == 0 {
		t.Error("no sample has broken UTF-8: the test tests less than it says")
	}
}

// The matcher finds what a search of the whole text finds.
func TestMatcher(t *testing.T) {
	k := bytewise(t)
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringMatching("[ab]{1,5}")
		stops := rapid.SliceOfN(letters, 1, 3).Draw(t, "stops")
		text := rapid.StringMatching("[abc]{0,40}").Draw(t, "text")
		m := &matcher{decoder: k.Decoder(false), matched: make([]int, len(stops))}
		for _, s := range stops {
			m.patterns = append(m.patterns, newPattern(s))
		}
		for i := range len(text) {
			id, _ := k.ID(text[i : i+1])
			found := m.next(id)
			want := -1
			for _, s := range stops {
				if at := strings.Index(text[:i+1], s); at >= 0 && (want < 0 || at < want) {
					want = at
				}
			}
			if found != (want >= 0) || found && m.cut != want {
				t.Fatalf("after %q: found %v at %d, want %d", text[:i+1], found, m.cut, want)
			}
			if found {
				return
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	m := newModel(t, small("qwen3", 40), engine.CPU(1))
	g := newGenerator(t, m, Options{Tokens: 256})
	sound := Request{Prompt: []int32{1}, MaxTokens: 4}
	for _, c := range []struct {
		want   string
		change func(*Request)
	}{
		{"prompt is empty", func(r *Request) { r.Prompt = nil }},
		{"token 40", func(r *Request) { r.Prompt = []int32{40} }},
		{"token -1", func(r *Request) { r.Prompt = []int32{-1} }},
		{"token 99", func(r *Request) { r.StopTokens = []int32{99} }},
		{"cache of 256 tokens", func(r *Request) { r.Prompt = make([]int32, 300) }},
		{"cache of 256 tokens", func(r *Request) { r.MaxTokens = 300 }},
		{"max_position_embeddings", func(r *Request) { r.MaxTokens = 1 << 25 }},
		{"at least 1", func(r *Request) { r.MaxTokens = 0 }},
		{"-1 samples", func(r *Request) { r.Samples = -1 }},
		{"temperature", func(r *Request) { r.Rule.Temperature = math.NaN() }},
		{"tokenizer", func(r *Request) { r.StopStrings = []string{"x"} }},
	} {
		r := sound
		c.change(&r)
		if err := g.Add(r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		_, err := g.Generate(context.Background(), []Request{sound, r})
		if err == nil || !strings.Contains(err.Error(), "request 1: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("among others: %v, want %q", err, c.want)
		}
	}
	if g.Pending() != 0 {
		t.Errorf("%d requests pending", g.Pending())
	}
	reward := newModel(t, small("qwen3", 40), engine.CPU(1))
	reward.ToReward(1)
	if _, err := New(reward, Options{}); err == nil || !strings.Contains(err.Error(), "caper score") {
		t.Errorf("a reward model: %v", err)
	}
	if _, err := New(m, Options{Tokens: -5}); err == nil {
		t.Error("a negative budget passes")
	}
}

// A cancelled run returns what it has, and the generator works as before.
func TestCancel(t *testing.T) {
	m := newModel(t, small("qwen35", 40), engine.CPU(2))
	g := newGenerator(t, m, Options{Batch: 2})
	request := Request{Prompt: []int32{1, 2, 3}, Samples: 3, MaxTokens: 50, Rule: sampling.Rule{Temperature: 1}}
	want := run(t, g, request)[0]
	ctx, cancel := context.WithCancel(context.Background())
	steps := 0
	results, err := []Result{}, error(nil)
	for r, e := range g.Stream(ctx, func(yield func(Request, error) bool) {
		for yield(request, nil) { // without end
			if steps++; steps == 3 {
				cancel()
			}
		}
	}) {
		if e != nil {
			err = e
			continue
		}
		results = append(results, r)
	}
	if !errors.Is(err, context.Canceled) || len(results) == 0 {
		t.Fatalf("%d results, error %v", len(results), err)
	}
	for _, r := range results {
		for i, s := range r.Samples {
			if s.Finish != Cancelled && s.Finish != Length || !slices.Equal(s.Tokens, want.Samples[i].Tokens[:len(s.Tokens)]) {
				t.Errorf("cut short: %+v", s)
			}
		}
	}
	if again := run(t, g, request)[0]; !slices.EqualFunc(again.Samples, want.Samples, sameSample) || g.available != g.blocks {
		t.Error("another result after a cancelled run")
	}
}

// Damaged weights end a sample, not the run.
func TestNotFinite(t *testing.T) {
	m := newModel(t, small("qwen3", 40), engine.CPU(1))
	m.Head.Set(7, 3, math.NaN())
	g := newGenerator(t, m, Options{})
	if s := run(t, g, Request{Prompt: []int32{1}, MaxTokens: 5})[0].Samples[0]; s.Finish != NotFinite || len(s.Tokens) != 0 {
		t.Errorf("%+v", s)
	}
}

// A step in the middle of generation allocates nothing.
func TestStepAllocatesNothing(t *testing.T) {
	for _, family := range families {
		k := bytewise(t)
		m := newModel(t, small(family, k.Size()), engine.CPU(2))
		if err := m.SetTokenizer(k); err != nil {
			t.Fatal(err)
		}
		g := newGenerator(t, m, Options{})
		for i := range uint64(4) {
			if err := g.Add(Request{Prompt: []int32{1, 2}, Samples: 4, MaxTokens: 900, Stream: i, Rule: sampling.Rule{Temperature: 1, TopP: 0.9}}); err != nil {
				t.Fatal(err)
			}
		}
		for range 130 { // over the borders of two blocks
			g.Step()
		}
		if n := testing.AllocsPerRun(100, func() { g.Step() }); n > 0 {
			t.Errorf("%s: %g allocations a step", family, n)
		}
	}
}

func ExampleGenerator_Generate() {
	c := qwen3.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers = 16, 8, 8, 1
	c.LayerTypes, c.Heads, c.KVHeads, c.HeadDim = qwen3.LayerTypes(1), 1, 1, 8
	m, err := model.New(model.Config{Text: c}, engine.CPU(0), 1) // or model.Load
	if err != nil {
		panic(err)
	}
	g, err := New(m, Options{})
	if err != nil {
		panic(err)
	}
	results, err := g.Generate(context.Background(), []Request{{
		Prompt: []int32{1, 2, 3}, Samples: 8, MaxTokens: 20, Rule: sampling.Rule{Temperature: 0.8}, Seed: 1,
	}})
	if err != nil {
		panic(err)
	}
	for _, s := range results[0].Samples {
		fmt.Println(len(s.Tokens), len(s.LogProbs), s.Finish)
	}
	// Output:
	// 20 20 length
	// 20 20 length
	// 20 20 length
	// 20 20 length
	// 20 20 length
	// 20 20 length
	// 20 20 length
	// 20 20 length
}
