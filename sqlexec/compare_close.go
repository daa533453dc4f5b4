package sqlexec

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
)

// floatTolerance is the relative difference up to which a float equals another
// number: far above the rounding of a sum in another order, far below what a
// different query gives.
const floatTolerance = 1e-9

// sameClosely compares row by row, after sorting where order does not count. The
// sort takes close numbers as equal, so rows that differ by rounding alone meet;
// this needs distinct values to lie further apart than the tolerance.
func sameClosely(gold, pred [][]Value, ordered bool) bool {
	same := func(a, b []Value) bool { return compareRows(a, b) == 0 }
	if slices.EqualFunc(gold, pred, same) {
		return true
	}
	if ordered {
		return false
	}
	g := slices.SortedFunc(slices.Values(gold), compareRows)
	p := slices.SortedFunc(slices.Values(pred), compareRows)
	return slices.EqualFunc(g, p, same)
}

func compareRows(a, b []Value) int { return slices.CompareFunc(a, b, compareValues) }

// compareValues orders NULL, numbers, texts, blobs, as SQLite does; 0 is "the same".
func compareValues(a, b Value) int {
	if c := cmp.Compare(class(a), class(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case int64, float64:
		return compareNumbers(a, b)
	case string:
		return strings.Compare(a, b.(string))
	case []byte:
		return bytes.Compare(a, b.([]byte))
	}
	return 0
}

func class(v Value) int {
	switch v.(type) {
	case nil:
		return 0
	case int64, float64:
		return 1
	case string:
		return 2
	}
	return 3
}

func compareNumbers(a, b Value) int {
	i, aIsInt := a.(int64)
	j, bIsInt := b.(int64)
	if aIsInt && bIsInt {
		return cmp.Compare(i, j) // no tolerance: identifiers differ by one
	}
	x, y := asFloat(a), asFloat(b)
	if math.Abs(x-y) <= floatTolerance*math.Max(math.Abs(x), math.Abs(y)) && !math.IsInf(x-y, 0) {
		return 0
	}
	return cmp.Compare(x, y)
}

func asFloat(v Value) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	return v.(float64)
}

// snapped gives each number of a table that is close to one of the target's the
// target's value, so that an exact comparison finds them equal.
func snapped(rows, target [][]Value) [][]Value {
	var numbers []Value
	for _, row := range target {
		for _, v := range row {
			if class(v) == class(0.0) {
				numbers = append(numbers, v)
			}
		}
	}
	slices.SortFunc(numbers, compareValues)
	out := make([][]Value, len(rows))
	for i, row := range rows {
		out[i] = slices.Clone(row)
		for j, v := range row {
			if class(v) != class(0.0) {
				continue
			}
			if at, found := slices.BinarySearchFunc(numbers, v, compareValues); found {
				out[i][j] = numbers[at]
			}
		}
	}
	return out
}
