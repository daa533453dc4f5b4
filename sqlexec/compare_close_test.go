package sqlexec

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const unordered = "SELECT x, y FROM t"

// minutes are Julian days a minute apart, 3 parts in 10^10, beside a number that sorts otherwise.
func minutes(n int) [][]Value {
	rows := make([][]Value, n)
	for i := range rows {
		rows[i] = []Value{2460000.5 + float64(i)/1440, float64(i*7919%n) / 3}
	}
	return rows
}

func TestStrictTakesAnyOrderOfABag(t *testing.T) {
	gold := minutes(2000)
	pred := slices.Clone(gold)
	slices.SortFunc(pred, func(a, b []Value) int { return compareValues(a[1], b[1]) })
	if !Strict.Same(table(gold...), table(pred...), unordered) {
		t.Error("the same bag in another order is wrong")
	}
	pred[7] = []Value{addFloats(pred[7][0].(float64), 1.0/1440), pred[7][1]}
	if Strict.Same(table(gold...), table(pred...), unordered) {
		t.Error("a date one minute off is correct")
	}
}

func TestStrictTellsCloseNumbersApart(t *testing.T) {
	sum := addFloats(0.1, 0.2)
	for _, c := range []struct {
		name       string
		gold, pred Value
		want       bool
	}{
		{"phones", 5551234567.0, 5551234568.0, false},
		{"phone and integer", 5551234567.0, int64(5551234569), false},
		{"long identifiers", 1234567890123456.0, 1234567890123457.0, false},
		{"long integers", int64(math.MaxInt64), int64(math.MaxInt64 - 1), false},
		{"days a minute apart", 2460000.5, 2460000.5 + 1.0/1440, false},
		{"days a second apart", 2460000.5, 2460000.5 + 1.0/86400, false},
		{"sum in another order", sum, 0.3, true},
		{"rounded whole number", 3.0, math.Nextafter(3, 4), true},
		{"rounded whole number, as integer", int64(3), math.Nextafter(3, 4), true},
		{"signs of zero", 0.0, math.Copysign(0, -1), true},
		{"infinities", math.Inf(1), math.Inf(1), true},
		{"infinity", math.Inf(1), math.MaxFloat64, false},
		{"infinities of other sign", math.Inf(1), math.Inf(-1), false},
	} {
		for _, q := range []Quirks{nil, {OrderAlways}, {ColumnPermutation}, {SetOfRows}} {
			gold, pred := table(row(c.gold, "a"), row(0.5, "b")), table(row(c.pred, "a"), row(0.5, "b"))
			if got := q.Same(gold, pred, unordered); got != c.want || q.Same(pred, gold, unordered) != got {
				t.Errorf("%s, with %v: %v", c.name, q, got)
			}
		}
	}
}

// Sums of the same numbers in another order are correct, in any order of rows and columns.
func TestStrictTakesSumsInAnotherOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		height := rapid.IntRange(1, 6).Draw(t, "rows")
		sum := func(terms []float64) (total float64) {
			for _, x := range terms {
				total += x
			}
			return total
		}
		gold, pred := make([][]Value, height), make([][]Value, height)
		for i := range gold {
			terms := rapid.SliceOfN(rapid.Float64Range(0.001, 1e6), 2, 200).Draw(t, "terms")
			gold[i] = row(sum(terms), i%2, sum(terms)/3)
			permuted := sum(rapid.Permutation(terms).Draw(t, "order"))
			pred[i] = row(permuted, i%2, permuted/3)
		}
		pred = rapid.Permutation(pred).Draw(t, "rows' order")
		for _, q := range []Quirks{nil, {ColumnPermutation}} {
			if !q.Same(table(gold...), table(pred...), unordered) {
				t.Fatalf("with %v: wrong", q)
			}
		}
	})
}

// matchable tries every pairing of rows.
func matchable(gold, pred [][]Value) bool {
	if len(gold) == 0 {
		return len(pred) == 0
	}
	for j := range pred {
		if closeRows(gold[0], pred[j]) && matchable(gold[1:], slices.Delete(slices.Clone(pred), j, j+1)) {
			return true
		}
	}
	return false
}

// The cells lie in chains, 0.4 and 0.9 of the tolerance from the next, so that rows have
// several close partners and neither sorting nor taking the first one is right.
func TestCloseBagsAreMatchable(t *testing.T) {
	var cells []Value
	for _, parts := range []float64{0, 0.4, 0.9, 1.3, 1.8, 2.7} {
		cells = append(cells, 0.7*(1+parts*tolerance), 2e12+2*parts)
	}
	cells = append(cells, int64(2e12), int64(2e12+1), int64(2e12+2), nil, "a")
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(1, 3).Draw(t, "width"), rapid.IntRange(1, 5).Draw(t, "height")
		chain := rapid.SampledFrom([][]Value{cells, {cells[0], cells[2], cells[4], cells[6]}, {cells[1], cells[3], cells[5], cells[12], cells[13]}}).Draw(t, "chain")
		cell := rapid.SampledFrom(chain)
		draw := func(label string) [][]Value {
			return rapid.SliceOfN(rapid.SliceOfN(cell, width, width), height, height).Draw(t, label)
		}
		gold, pred := draw("gold"), draw("pred")
		if rapid.Bool().Draw(t, "a permutation") {
			pred = rapid.Permutation(gold).Draw(t, "pred")
		}
		if want := matchable(gold, pred); sameClosely(gold, pred, false) != want {
			t.Fatalf("matchable: %v", want)
		}
	})
}

// A long chain of close numbers, as events a tenth of a millisecond apart are, is still
// compared row by row with its neighbours alone.
func TestLongChainOfCloseNumbers(t *testing.T) {
	const n = 20_000
	gold, pred := make([][]Value, n), make([][]Value, n)
	for i := range gold {
		x := 1.7e9 + float64(i)*1e-4 + 3e-5
		gold[i], pred[n-1-i] = row(x, i%2), row(x, (i+1)%2)
	}
	if !sameClosely(gold, pred, false) {
		t.Error("each row has a close one beside it")
	}
	pred[n/2] = row(pred[n/2][0], 1-int(pred[n/2][1].(int64)))
	if sameClosely(gold, pred, false) {
		t.Error("one row too many with this integer")
	}
}
