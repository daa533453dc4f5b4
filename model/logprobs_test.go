package model

import (
	"math"
	"slices"
	"testing"

	"caper/engine"
)

// Sequences that share beginnings get the log-probs that each has alone, whatever the
// budget; empty ones and single tokens have none.
func TestLogProbs(t *testing.T) {
	for _, family := range families {
		m := newModel(t, small(family), engine.CPU(2))
		sequences := slices.Concat([][]int32{{}, {7}}, branches(3, 40), [][]int32{{}})
		var want [][]float64
		for _, s := range sequences {
			l, err := NewLogProber(m, 0)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, l.LogProbs([][]int32{s})...)
		}
		for _, budget := range []int{1, 100, 1000} {
			l, err := NewLogProber(m, budget)
			if err != nil {
				t.Fatal(err)
			}
			got := l.LogProbs(sequences)
			if len(got) != len(want) {
				t.Fatalf("%d results for %d sequences", len(got), len(want))
			}
			for i := range want {
				if len(got[i]) != max(0, len(sequences[i])-1) {
					t.Fatalf("sequence %d of %d tokens: %d log-probs", i, len(sequences[i]), len(got[i]))
				}
				for j := range want[i] {
					// Where a tree cuts chunks of the delta rule, roundings of 6e-8 differ.
					if !(math.Abs(got[i][j]-want[i][j]) <= 2e-5) {
						t.Errorf("%s, budget %d, sequence %d, token %d: %g, alone %g", family, budget, i, j, got[i][j], want[i][j])
					}
				}
			}
		}
	}
	reward := newModel(t, small("qwen3"), engine.CPU(1))
	reward.ToReward(1)
	if _, err := NewLogProber(reward, 0); err == nil {
		t.Error("a reward model has log-probs")
	}
}
