package run

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLearningRate(t *testing.T) {
	c := Train{LR: 2, MinLRRatio: 0.1, Warmup: 0.04}
	for _, k := range []struct {
		step int
		want float64
	}{
		{0, 0.5}, {1, 1}, {3, 2}, // warm-up over 4 of 100 steps
		{4, 2}, {52, 1.1}, {28, 0.2 + 1.8*(1+math.Sqrt2/2)/2}, // half a cosine over 96
		{100, 0.2},
	} {
		if got := c.learningRate(k.step, 100); math.Abs(got-k.want) > 1e-12 {
			t.Errorf("step %d: %v, want %v", k.step, got, k.want)
		}
	}
}

// The rate rises to its peak, falls to its floor, and stays positive, for any
// length of run.
func TestLearningRateRisesOnceAndFallsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Train{LR: 1, MinLRRatio: rapid.Float64Range(0, 1).Draw(t, "floor"), Warmup: rapid.Float64Range(0, 1).Draw(t, "warmup")}
		total := rapid.IntRange(1, 50).Draw(t, "total")
		before, falling := 0.0, false
		for step := range total {
			rate := c.learningRate(step, total)
			if !(rate > 0 && rate <= 1) || falling && rate > before+1e-12 {
				t.Fatalf("step %d of %d: %v after %v", step, total, rate, before)
			}
			falling = falling || rate < before-1e-12
			before = rate
		}
	})
}
