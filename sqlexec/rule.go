package sqlexec

import (
	"fmt"

	"caper/sql"
)

// Rule decides whether a prediction's result is as good as the gold result. Bird and
// TestSuite compare as the official evaluators do, so that verdicts agree; Strict is
// the corrected one. (Quirks that break a prediction before it runs, and those of how
// an evaluator is used, are package eval's.)
type Rule string

const (
	// Bird is BIRD's rule: equal sets of rows. Order and duplicates do not
	// count, columns do; 1 equals 1.0. A text that is not UTF-8 fails it.
	Bird Rule = "bird"
	// TestSuite is the rule of Spider's test-suite evaluator: DISTINCT is removed
	// before both queries run; equal bags of rows, or lists where gold has ORDER BY
	// anywhere, under some permutation of columns. Two empty results are equal
	// whatever their columns.
	TestSuite Rule = "test-suite"
	// Strict has no quirks.
	Strict Rule = "strict"
)

var (
	birdQuirks      = Quirks{SetOfRows, OrderIgnored, EmptyWidth, ExactFloats, BadBytesFail}
	testSuiteQuirks = Quirks{OperatorsJoined, CurrentYear, DistinctStripped, ColumnPermutation, EmptyWidth, OrderByAnywhere,
		ExactFloats, RowSortCheck, BadBytesDropped}
)

// Quirks returns what the rule does beside the strict one.
func (r Rule) Quirks() Quirks {
	switch r {
	case Bird:
		return birdQuirks
	case TestSuite:
		return testSuiteQuirks
	case Strict:
		return nil
	}
	panic(fmt.Sprintf("sqlexec: no rule %q", string(r)))
}

// Rewrite returns the text to run in place of query, gold or predicted.
func (r Rule) Rewrite(query string) string { return r.Quirks().Rewrite(query) }

// Same reports whether pred is as good as gold; goldSQL is gold's text before Rewrite.
func (r Rule) Same(gold, pred *Result, goldSQL string) bool {
	return r.Quirks().Same(gold, pred, goldSQL)
}

// SameRecords is Same of the results that two records hold.
func (r Rule) SameRecords(gold, pred Record, goldSQL string) bool {
	return r.Quirks().SameRecords(gold, pred, goldSQL)
}

// CountsRows reports that results with different numbers of rows are never the same.
func (r Rule) CountsRows() bool { return !r.Quirks().Has(SetOfRows) }

// ordersItsRows reports whether the outermost statement has an ORDER BY.
func ordersItsRows(query string) bool {
	for _, c := range sql.Clauses(query) {
		if c.Kind == sql.ClauseOrderBy {
			return true
		}
	}
	return false
}

// ParseRule reads a rule's name.
func ParseRule(name string) (Rule, error) {
	switch r := Rule(name); r {
	case Bird, TestSuite, Strict:
		return r, nil
	}
	return "", fmt.Errorf("rule %q: want test-suite, bird or strict", name)
}
