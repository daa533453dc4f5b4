package eval

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRankAveragesOverOrders compares rank with a count over all orders that
// ascending scores allow.
func TestRankAveragesOverOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.SampledFrom([]float64{-1, 0, 0.5, math.NaN()}), 1, 6).Draw(t, "scores")
		faulty := rapid.IntRange(0, len(scores)-1).Draw(t, "faulty")
		got, want := rank(scores, faulty), rankByOrders(scores, faulty)
		if math.Abs(got.top1-want.top1) > 1e-12 || math.Abs(got.reciprocal-want.reciprocal) > 1e-12 {
			t.Fatalf("rank(%v, %d) = %v, want %v", scores, faulty, got, want)
		}
	})
}

func rankByOrders(scores []float64, faulty int) outcome {
	var sum outcome
	orders := 0.0
	permute(len(scores), func(order []int) {
		ascending := slices.IsSortedFunc(order, func(a, b int) int {
			switch x, y := worstNaN(scores[a]), worstNaN(scores[b]); {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
		if !ascending {
			return
		}
		orders++
		place := slices.Index(order, faulty)
		if place == 0 {
			sum.top1++
		}
		sum.reciprocal += 1 / float64(place+1)
	})
	return outcome{sum.top1 / orders, sum.reciprocal / orders}
}

// permute calls use with every order of 0..n-1.
func permute(n int, use func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var from func(k int)
	from = func(k int) {
		if k == n {
			use(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			from(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	from(0)
}

func TestRankByHand(t *testing.T) {
	for _, c := range []struct {
		scores     []float64
		faulty     int
		top1, mean float64
	}{
		{[]float64{-2, 1, 3}, 0, 1, 1},
		{[]float64{-2, 1, 3}, 2, 0, 1.0 / 3},
		{[]float64{5, 5, 5, 5}, 1, 0.25, (1 + 1.0/2 + 1.0/3 + 1.0/4) / 4},
		{[]float64{0, 1, 1, 2}, 2, 0, (1.0/2 + 1.0/3) / 2},
		{[]float64{math.NaN(), 1}, 0, 0, 0.5},
	} {
		got := rank(c.scores, c.faulty)
		if math.Abs(got.top1-c.top1) > 1e-12 || math.Abs(got.reciprocal-c.mean) > 1e-12 {
			t.Errorf("rank(%v, %d) = %v, want {%v %v}", c.scores, c.faulty, got, c.top1, c.mean)
		}
	}
}
