package curriculum

import (
	"cmp"
	"slices"

	"caper/engine"
)

// anchors are the questions of rate 1 that stay: those with the smallest keys.
func (s Stage) anchors(items []Item, keys []uint64) []int {
	var sure []int
	for i, item := range items {
		if item.Origin == Benchmark && item.Answers > 0 && item.Right == item.Answers {
			sure = append(sure, i)
		}
	}
	slices.SortStableFunc(sure, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	return sure[:int(s.Anchors*float64(len(sure)))]
}

// Draw returns an epoch of n draws, as indices of weights, which may be of any sum. Each is
// drawn as often as its share of n, give or take less than one; the order, and which of
// those are drawn once more, depend on seed and epoch alone.
func Draw(weights []float64, n int, seed uint64, epoch int) []int {
	r := engine.Random(seed, "curriculum", uint64(epoch), 0)
	sum, last := 0.0, 0
	for i, w := range weights {
		if sum += w; w > 0 {
			last = i
		}
	}
	var drawn []int
	next, below := r.Float64(), 0.0
	for i, w := range weights {
		for below += w / sum * float64(n); len(drawn) < n && (next < below || i == last); next++ {
			drawn = append(drawn, i) // the last one takes what rounding leaves
		}
	}
	r.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}
