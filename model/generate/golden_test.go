package generate

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"caper/engine"
	"caper/kernels/linear"
	"caper/kernels/logprob"
	"caper/model"
	"caper/model/safetensors"
)

func goldenFolder(t *testing.T) string {
	t.Helper()
	root, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(root, "go.mod")); e == nil {
			break
		}
		root = filepath.Dir(root)
	}
	dir := filepath.Join(root, "..", "shared", "data", "golden")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no reference data at %s", dir)
	}
	return dir
}

func goldenInts(t *testing.T, dir, name string) []int32 {
	t.Helper()
	file, err := safetensors.Open(filepath.Join(dir, "golden.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tensor, err := file.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	wide := make([]int64, tensor.Len())
	if err := tensor.Int64s(wide); err != nil {
		t.Fatal(err)
	}
	var ids []int32
	for _, id := range wide {
		ids = append(ids, int32(id))
	}
	return ids
}

// uncached returns the greedy continuation that computes the whole sequence again for
// each token.
func uncached(m *model.Model, prompt []int32, n int) []int32 {
	tokens := slices.Clone(prompt)
	tape := engine.NewTape(m.Device())
	tape.Inference = true
	for range n {
		tape.Reset()
		var tree engine.Tree
		tree.AddSegment(-1, tokens)
		logits := linear.Forward(tape, m.Backbone.Hidden(tape, &tree), m.Head.Tensor)
		best := 0
		for j := range logits.Cols {
			if logits.At(len(tokens)-1, j) > logits.At(len(tokens)-1, best) {
				best = j
			}
		}
		tokens = append(tokens, int32(best))
	}
	return tokens[len(prompt):]
}

// trained returns the log-probs of a continuation as training computes them: packed
// together with the prompt, all at once.
func trained(m *model.Model, prompt []int32, samples ...[]int32) [][]float64 {
	tape := engine.NewTape(m.Device())
	tape.Inference = true
	var tree engine.Tree
	var sequences [][]int32
	for _, s := range samples {
		sequences = append(sequences, slices.Concat(prompt, s))
	}
	var rows, targets []int32
	for i, path := range tree.Pack(sequences) {
		for p, id := range samples[i] {
			rows, targets = append(rows, path[len(prompt)-1+p]), append(targets, id)
		}
	}
	y := logprob.Forward(tape, m.Backbone.Hidden(tape, &tree), m.Head.Tensor, rows, targets)
	values := make([][]float64, len(samples))
	row := 0
	for i, s := range samples {
		for range s {
			values[i] = append(values[i], y.At(row, 0))
			row++
		}
	}
	return values
}

// apart is the largest distance of log-probs.
func apart(got []float32, want []float64) float64 {
	worst := 0.0
	for i := range want {
		worst = max(worst, math.Abs(float64(got[i])-want[i]))
	}
	return worst
}

// Greedy generation gives transformers' tokens, with the cache and without, and the
// log-probs of training, on both devices. The reference device shows that the cache
// is right; what is left of the distance is its results' rounding to float32.
func TestGolden(t *testing.T) {
	dir := goldenFolder(t)
	for dev, tolerance := range map[engine.Device]float64{engine.CPU(2): 1e-4, engine.Reference(): 1e-6} {
		for _, name := range []string{"qwen35-tied", "qwen35-untied", "qwen3", "qwen3-tied"} {
			t.Run(dev.Name()+"/"+name, func(t *testing.T) {
				folder := filepath.Join(dir, name)
				m, err := model.Load(folder, dev, model.Frozen)
				if err != nil {
					t.Fatal(err)
				}
				prompt, want := goldenInts(t, folder, "gen.prompt"), goldenInts(t, folder, "gen.tokens")
				g, err := New(m, Options{Tokens: 128, Batch: 3})
				if err != nil {
					t.Fatal(err)
				}
				results, err := g.Generate(context.Background(), []Request{{Prompt: prompt, MaxTokens: len(want), Samples: 2}})
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range results[0].Samples {
					if !slices.Equal(s.Tokens, want) {
						t.Fatalf("with the cache: %v, want %v", s.Tokens, want)
					}
					distance := apart(s.LogProbs, trained(m, prompt, s.Tokens)[0])
					if t.Logf("log-probs with and without the cache differ by at most %.2g", distance); !(distance <= tolerance) {
						t.Errorf("log-probs differ by %g, at most %g", distance, tolerance)
					}
				}
				if got := uncached(m, prompt, len(want)); !slices.Equal(got, want) {
					t.Errorf("without the cache: %v, want %v", got, want)
				}
			})
		}
	}
}
