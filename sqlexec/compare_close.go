package sqlexec

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
)

// tolerance is the relative difference up to which numbers are close. It is for
// rounding alone: a sum of n numbers of one sign in another order differs by at most
// n*2^-53 of itself, some 10^4 terms at worst, and by about the root of n as a rule,
// some 10^7 terms. Dates and identifiers lie further apart: a second is 5e-12 of a
// Julian day.
const tolerance = 1e-12

// firstRounded is where float64 begins to leave out whole numbers.
const firstRounded = 1 << 53

// areClose reports whether two numbers differ by rounding at most. Whole numbers have
// no rounding, nor have their sums, as long as a float can hold them: they are equal
// or differ, however long an identifier is.
func areClose(a, b Value) bool {
	if isExact(a) && isExact(b) {
		return compareNumbers(a, b) == 0
	}
	return withinTolerance(asFloat(a), asFloat(b))
}

func isExact(v Value) bool {
	x, isFloat := v.(float64)
	return !isFloat || x == math.Trunc(x) && math.Abs(x) < firstRounded
}

// withinTolerance is monotone: if it holds for two numbers, it holds for all between.
func withinTolerance(x, y float64) bool {
	return x == y || !math.IsInf(x-y, 0) && math.Abs(x-y) <= tolerance*math.Max(math.Abs(x), math.Abs(y))
}

func closeRows(a, b []Value) bool { return slices.EqualFunc(a, b, closeValues) }

func closeValues(a, b Value) bool {
	if isNumber(a) && isNumber(b) {
		return areClose(a, b)
	}
	return compareValues(a, b) == 0
}

func compareRows(a, b []Value) int { return slices.CompareFunc(a, b, compareValues) }

// compareValues orders NULL, numbers, texts, blobs, as SQLite does, without tolerance:
// "close" is not transitive and orders nothing.
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

func isNumber(v Value) bool { return class(v) == 1 }

// compareNumbers compares as floats, then as integers: several integers beyond 2^53
// share a float, and that float is itself one of them.
func compareNumbers(a, b Value) int {
	if c := cmp.Compare(asFloat(a), asFloat(b)); c != 0 {
		return c
	}
	return cmp.Compare(asInteger(a), asInteger(b))
}

func asFloat(v Value) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	return v.(float64)
}

func asInteger(v Value) int64 {
	x, isFloat := v.(float64)
	switch {
	case !isFloat:
		return v.(int64)
	case x >= 1<<63:
		return math.MaxInt64
	case x < -1<<63:
		return math.MinInt64
	}
	return int64(x)
}

// samePermutedClosely is sameClosely under any order of columns.
func samePermutedClosely(gold, pred [][]Value, ordered bool) bool {
	return sameClosely(gold, pred, ordered) || samePermuted(gold, snapped(pred, gold), ordered)
}

// snapped gives each number of a table the nearest of the target's, if that is close,
// so that an exact comparison finds them equal.
func snapped(rows, target [][]Value) [][]Value {
	var numbers []Value
	for _, row := range target {
		for _, v := range row {
			if isNumber(v) {
				numbers = append(numbers, v)
			}
		}
	}
	slices.SortFunc(numbers, compareNumbers)
	out := make([][]Value, len(rows))
	for i, row := range rows {
		out[i] = slices.Clone(row)
		for j, v := range row {
			if isNumber(v) {
				out[i][j] = nearestClose(numbers, v)
			}
		}
	}
	return out
}

// nearestClose looks at v's two neighbours among sorted numbers; v itself if neither is close.
func nearestClose(numbers []Value, v Value) Value {
	at, found := slices.BinarySearchFunc(numbers, v, compareNumbers)
	if found {
		return numbers[at]
	}
	nearest, distance := v, math.Inf(1)
	for _, n := range numbers[max(at-1, 0):min(at+1, len(numbers))] {
		if d := math.Abs(asFloat(n) - asFloat(v)); d < distance && areClose(n, v) {
			nearest, distance = n, d
		}
	}
	return nearest
}
