package rollout

import (
	"context"
	"slices"
	"testing"
	"time"

	"caper/engine"
	"caper/kernels/sampling"
	"caper/model"
	"caper/model/generate"
	"caper/model/qwen35"
)

// BenchmarkSharing compares a group of 8 samples, of 64 tokens on a prompt of 512, with 8
// groups of one on the same prompt, in turns. It reports how many times faster the group
// is (faster), the ideal of that, and the share of the ideal reached in percent:
//
//   - tokens: the ideal is the ratio of the tokens computed, 8 (512+64) / (512 + 8 64);
//   - time: the ideal is the ratio of the times if only the prompts were shared, and each
//     token after them took what it takes without sharing.
func BenchmarkSharing(b *testing.B) {
	const group, prompt, answer = 8, 512, 64
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Tied = 8192, 256, 768, 4, true
	c.Heads, c.KVHeads, c.HeadDim = 4, 2, 64
	c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim = 4, 4, 64, 64
	c.LayerTypes = qwen35.LayerTypes(c.Layers, 4)
	m, err := model.New(model.Config{Text: c}, engine.CPU(0), 1)
	if err != nil {
		b.Fatal(err)
	}
	tokens := make([]int32, prompt)
	for i := range tokens {
		tokens[i] = engine.Random(1, "prompt", uint64(i), 0).Int32N(8192)
	}
	// seconds of so many groups; no end token, so that all answers are of full length.
	seconds := func(groups, samples, length int) float64 {
		n, err := NewNative(m, Options{Samples: samples, MaxTokens: length, Rule: sampling.Rule{Temperature: 1}, Memory: generate.Options{Prefill: group * prompt}}, 0)
		if err != nil {
			b.Fatal(err)
		}
		var questions []Question
		for i := range groups {
			questions = append(questions, Question{Index: i, Tokens: tokens})
		}
		began := time.Now()
		for g, err := range n.Groups(context.Background(), 1, questions) {
			if err != nil || len(g.Samples) != samples || len(g.Samples[0].Tokens) != length {
				b.Fatalf("%+v, %v", g, err)
			}
		}
		return time.Since(began).Seconds()
	}
	var took, faster, ideal []float64
	seconds(group, 1, answer) // warms up
	for b.Loop() {
		shared, separate := seconds(1, group, answer), seconds(group, 1, answer)
		one, all := seconds(1, 1, 1), seconds(group, 1, 1) // the prompts alone
		took, faster = append(took, shared), append(faster, separate/shared)
		ideal = append(ideal, separate/(one+separate-all))
	}
	byTokens := float64(group*(prompt+answer)) / (prompt + group*answer)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1e3*median(took), "ms/group")
	b.ReportMetric(median(faster), "faster")
	b.ReportMetric(byTokens, "ideal-tokens")
	b.ReportMetric(100*median(faster)/byTokens, "%-of-tokens")
	b.ReportMetric(median(ideal), "ideal-time")
	b.ReportMetric(100*median(faster)/median(ideal), "%-of-time")
}

func median(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }
