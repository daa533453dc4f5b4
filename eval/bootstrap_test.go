package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestIntervalCoverage draws many samples of questions of unequal difficulty and
// counts how often the interval holds the true mean. That faults of a question
// are alike is what makes it necessary to resample questions: resampling faults
// covers far less.
func TestIntervalCoverage(t *testing.T) {
	if testing.Short() {
		t.Skip("a long walk on one goroutine")
	}
	const trials, questions, perQuestion = 300, 60, 6
	random := rand.New(rand.NewPCG(7, 7))
	byQuestion, byFault := 0, 0
	for trial := range trials {
		clustered, flat := newSampler(1, 1), newSampler(1, 1)
		for q := range questions {
			difficulty := random.Float64() // the true mean is 1/2
			for i := range perQuestion {
				hit := 0.0
				if random.Float64() < difficulty {
					hit = 1
				}
				clustered.add(fmt.Sprint(q), 0, []float64{hit})
				flat.add(fmt.Sprint(q, i), 0, []float64{hit})
			}
		}
		holds := func(s *sampler) bool {
			i := interval(s.resample(300, uint64(trial))[0])
			return i[0] <= 0.5 && 0.5 <= i[1]
		}
		if holds(clustered) {
			byQuestion++
		}
		if holds(flat) {
			byFault++
		}
	}
	// 95 % of 300 is 285; four standard deviations below are 270.
	if byQuestion < 270 {
		t.Errorf("the interval holds the truth %d times of %d", byQuestion, trials)
	}
	if byFault >= byQuestion {
		t.Errorf("resampling faults covers %d, resampling questions %d", byFault, byQuestion)
	}
}

func TestBalancedMean(t *testing.T) {
	s := newSampler(1, 2)
	for range 9 {
		s.add("a", 0, []float64{1})
	}
	s.add("b", 1, []float64{0})
	if got := s.mean()[0]; got != 0.5 {
		t.Errorf("mean %v of strata with means 1 and 0, want 0.5", got)
	}
	// Resamples hold a alone, b alone or both: means 1, 0 and 0.5.
	counts := map[float64]int{}
	const n = 4000
	for _, m := range s.resample(n, 3)[0] {
		counts[m]++
	}
	for mean, share := range map[float64]float64{1: 0.25, 0.5: 0.5, 0: 0.25} {
		if got := float64(counts[mean]) / n; math.Abs(got-share) > 0.05 {
			t.Errorf("mean %v in %.2f of the resamples, want %.2f", mean, got, share)
		}
	}
}

func TestIntervalEnds(t *testing.T) {
	var values []float64
	for i := range 1001 {
		values = append(values, float64((i*8)%1001))
	}
	if got, want := interval(values), (Interval{25, 975}); got != want {
		t.Errorf("interval %v, want %v", got, want)
	}
}
