package curriculum

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"caper/data"
)

func randomItems(r *rand.Rand, n, samples int) (items []Item, keys []uint64) {
	for i := range n {
		answers := samples
		if r.IntN(10) == 0 {
			answers = r.IntN(samples + 1) // some did not come
		}
		items = append(items, Item{Question: data.Question{ID: data.IndexID(i)}, Origin: Benchmark, Rate: Rate{Right: r.IntN(answers + 1), Answers: answers}})
		keys = append(keys, r.Uint64())
	}
	return items, keys
}

// Weights sum to 1. A question of rate 0 has none; of those with rate 1, a share stays at
// most, with weights that are no larger than any other; bounds hold.
func TestWeightsAreADistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for trial := range 300 {
		samples := 2 + r.IntN(15)
		items, keys := randomItems(r, 1+r.IntN(200), samples)
		s := Stage{Samples: samples, High: 1, Anchors: 0.05}
		if trial%2 == 1 {
			s.Low, s.High = 1.0/float64(samples), 0.5
		}
		s.Weigh(items, keys)
		sum, learned, sure, anchors, lightest, heaviest := 0.0, 0, 0, 0, 1.0, 0.0
		for _, i := range items {
			sum += i.Weight
			switch {
			case i.Answers > 0 && i.Right == i.Answers:
				if sure++; i.Weight > 0 {
					anchors++
					heaviest = max(heaviest, i.Weight)
				}
			case i.Right == 0 || i.P() < s.Low || i.P() > s.High:
				if i.Weight != 0 {
					t.Fatalf("%d of %d right weighs %g", i.Right, i.Answers, i.Weight)
				}
			default:
				if learned++; i.Weight <= 0 {
					t.Fatalf("%d of %d right weighs %g", i.Right, i.Answers, i.Weight)
				}
				lightest = min(lightest, i.Weight)
			}
		}
		if learned == 0 {
			if sum != 0 {
				t.Fatalf("nothing to learn from, and the weights sum to %g", sum)
			}
			continue
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("the weights sum to %.15g", sum)
		}
		if float64(anchors) > 0.05*float64(sure) || heaviest > lightest*(1+1e-12) {
			t.Fatalf("%d anchors of %d, of weight %g beside %g", anchors, sure, heaviest, lightest)
		}
	}
}

// Of bins of equal size, one nearer to a half weighs more. Of bins of rates p and 1 - p, the
// larger one weighs more as a whole, by the root of the sizes' ratio, and less a question.
func TestWeightsAreMonotone(t *testing.T) {
	fill := func(counts map[int]int) (weights map[int]float64) {
		var items []Item
		for right, n := range counts {
			for range n {
				items = append(items, Item{Rate: Rate{Right: right, Answers: 8}})
			}
		}
		Stage{Samples: 8, High: 1}.Weigh(items, make([]uint64, len(items)))
		weights = map[int]float64{}
		for _, i := range items {
			weights[i.Right] = i.Weight
		}
		return weights
	}
	w := fill(map[int]int{1: 5, 2: 5, 3: 5, 4: 5, 5: 5, 6: 5, 7: 5})
	for k := 1; k < 4; k++ {
		if !(w[k] < w[k+1]) || math.Abs(w[k]-w[8-k]) > 1e-15 {
			t.Errorf("weights of equal bins: %v", w)
		}
	}
	w = fill(map[int]int{2: 4, 6: 36})
	if a, b := 4*w[2], 36*w[6]; math.Abs(b/a-3) > 1e-12 || w[2] <= w[6] {
		t.Errorf("bins of 4 and 36 questions weigh %g and %g, want the second three times as much", a, b)
	}
}

// An epoch draws each question as often as its share, give or take less than one draw, and
// depends on seed and epoch alone.
func TestDrawFollowsTheWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for range 200 {
		weights := make([]float64, 1+r.IntN(60))
		sum := 0.0
		for i := range weights {
			if r.IntN(4) > 0 {
				weights[i] = r.Float64()
			}
			sum += weights[i]
		}
		if sum == 0 {
			continue
		}
		n, seed, epoch := 1+r.IntN(100), r.Uint64(), r.IntN(5)
		drawn := Draw(weights, n, seed, epoch)
		counts := make([]int, len(weights))
		for _, i := range drawn {
			counts[i]++
		}
		for i, count := range counts {
			if share := weights[i] / sum * float64(n); math.Abs(float64(count)-share) >= 1+1e-9 || weights[i] == 0 && count > 0 {
				t.Fatalf("a question of share %g is drawn %d times of %d", share, count, n)
			}
		}
		if len(drawn) != n {
			t.Fatalf("%d draws, not %d", len(drawn), n)
		}
		if !slices.Equal(drawn, Draw(weights, n, seed, epoch)) {
			t.Fatal("two draws of the same epoch differ")
		}
	}
	even := make([]float64, 50)
	for i := range even {
		even[i] = 1
	}
	if slices.Equal(Draw(even, 50, 1, 0), Draw(even, 50, 1, 1)) {
		t.Error("two epochs have the same order")
	}
}
