package sqlexec

import (
	"slices"
	"strings"
)

// Quirk is a way in which an official evaluator departs from the strict rule.
type Quirk string

// Quirks is a set of them. An official rule is the strict rule with its quirks; the
// empty set is the strict rule itself.
type Quirks []Quirk

// Quirks of the text that runs.
const (
	// ValueWord: the letters "value" become 1 wherever they stand in a prediction.
	ValueWord Quirk = "value-word"
	// OperatorsJoined: "> =", "< =" and "! =" lose their space.
	OperatorsJoined Quirk = "operators-joined"
	// CurrentYear: YEAR(CURDATE()) becomes 2020.
	CurrentYear Quirk = "current-year"
	// DistinctStripped: every DISTINCT is removed, also inside COUNT.
	DistinctStripped Quirk = "distinct-stripped"
	// FirstStatement: text behind the first statement does not run.
	FirstStatement Quirk = "first-statement"
)

// Quirks of the comparison.
const (
	// SetOfRows: a row that occurs several times is one row.
	SetOfRows Quirk = "set-rows"
	// OrderIgnored: the order of rows never counts.
	OrderIgnored Quirk = "order-ignored"
	// OrderAlways: the order of rows always counts.
	OrderAlways Quirk = "order-always"
	// OrderByAnywhere: the order of rows counts where gold's text has "order by",
	// in a sub-query or a text too, and not where other space is between the words.
	OrderByAnywhere Quirk = "order-by-anywhere"
	// ColumnPermutation: columns may stand in any order.
	ColumnPermutation Quirk = "column-permutation"
	// EmptyWidth: two results without rows are equal whatever their columns.
	EmptyWidth Quirk = "empty-width"
	// ExactFloats: numbers that differ by rounding alone differ.
	ExactFloats Quirk = "exact-floats"
	// RowSortCheck: equal tables are refused where 1 meets 1.0 and the two sort
	// differently, as printed, among the cells of their row.
	RowSortCheck Quirk = "row-sort-check"
	// BadBytesDropped: bytes that are not UTF-8 vanish from texts.
	BadBytesDropped Quirk = "bad-bytes-dropped"
	// BadBytesFail: a text that is not UTF-8 fails the comparison.
	BadBytesFail Quirk = "bad-bytes-fail"
)

// Has reports whether the set has x.
func (q Quirks) Has(x Quirk) bool { return slices.Contains(q, x) }

// Without returns the set without x.
func (q Quirks) Without(x Quirk) Quirks {
	return slices.DeleteFunc(slices.Clone(q), func(y Quirk) bool { return x == y })
}

// Same reports whether pred is as good as gold. goldSQL is gold's text as written;
// its ORDER BY decides whether row order counts. Without quirks results are bags of
// rows, or lists where gold's outermost clause list has ORDER BY; columns count in
// their order; NULL equals NULL; and numbers that are not whole may differ by one part
// in 10^12, since sums depend on row order. A truncated result is never the same as a whole one.
func (q Quirks) Same(gold, pred *Result, goldSQL string) bool {
	switch {
	case gold.Truncated != pred.Truncated:
		return false
	case q.Has(BadBytesFail) && !(gold.Decodable() && pred.Decodable()):
		return false
	case q.Has(EmptyWidth) && len(gold.Rows) == 0 && len(pred.Rows) == 0:
		return true
	case len(gold.Columns) != len(pred.Columns):
		return false
	}
	g, p := gold.Rows, pred.Rows
	if q.Has(BadBytesDropped) {
		g, p = droppingBadBytes(g), droppingBadBytes(p)
	}
	if q.Has(SetOfRows) {
		g, p = DistinctRows(g), DistinctRows(p)
	}
	if len(g) != len(p) {
		return false
	}
	ordered := q.ordered(goldSQL)
	return q.sameRows(g, p, ordered) && (!q.Has(RowSortCheck) || passesSortCheck(g, p, ordered))
}

// SameRecords is Same of the results that two records hold. Mostly their bytes tell.
func (q Quirks) SameRecords(gold, pred Record, goldSQL string) bool {
	switch {
	case gold.isEqual(pred):
		return !q.Has(BadBytesFail) || gold.Result().Decodable()
	case !q.Has(SetOfRows) && gold.Rows() != pred.Rows():
		return false
	}
	return q.Same(gold.Result(), pred.Result(), goldSQL)
}

func (q Quirks) sameRows(gold, pred [][]Value, ordered bool) bool {
	switch {
	case q.Has(ColumnPermutation) && q.Has(ExactFloats):
		return samePermuted(gold, pred, ordered)
	case q.Has(ColumnPermutation):
		return samePermutedClosely(gold, pred, ordered)
	case q.Has(ExactFloats):
		return sameExactly(gold, pred, ordered)
	}
	return sameClosely(gold, pred, ordered)
}

// ordered reports whether the order of rows counts.
func (q Quirks) ordered(goldSQL string) bool {
	switch {
	case q.Has(OrderIgnored):
		return false
	case q.Has(OrderAlways):
		return true
	case q.Has(OrderByAnywhere):
		return strings.Contains(strings.ToLower(goldSQL), "order by")
	}
	return ordersItsRows(goldSQL)
}
