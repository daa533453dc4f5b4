package sqlexec

import (
	"fmt"
	"strings"

	"caper/sql"
)

// Rule decides whether a prediction's result is as good as the gold result. Bird and
// TestSuite are the official evaluators' rules, quirks included, so that verdicts
// agree; Strict is the corrected one.
type Rule string

const (
	// Bird is BIRD's rule: equal sets of rows. Order and duplicates do not
	// count, columns do; 1 equals 1.0. A text that is not UTF-8 fails it.
	Bird Rule = "bird"
	// TestSuite is the rule of Spider's test-suite evaluator on one database:
	// DISTINCT is removed before both queries run; equal bags of rows, or
	// lists where gold has ORDER BY anywhere, under some permutation of
	// columns. Two empty results are equal whatever their columns.
	TestSuite Rule = "test-suite"
	// Strict compares bags of rows, or lists where gold's outermost clause
	// list has ORDER BY. Columns count in their order, NULL equals NULL, and
	// floats may differ by one part in 10^9, since sums depend on row order.
	Strict Rule = "strict"
)

// ParseRule reads a rule's name.
func ParseRule(name string) (Rule, error) {
	switch r := Rule(name); r {
	case Bird, TestSuite, Strict:
		return r, nil
	case "spider":
		return "", fmt.Errorf("rule %q is not available yet: use test-suite, bird or strict", name)
	}
	return "", fmt.Errorf("rule %q: want test-suite, bird or strict", name)
}

// Rewrite returns the text to run in place of query, gold or predicted.
func (r Rule) Rewrite(query string) string {
	if r == TestSuite {
		return rewriteForTestSuite(query)
	}
	return query
}

// Same reports whether pred is as good as gold. goldSQL is gold's text as
// written, before Rewrite; its ORDER BY decides whether row order counts. A
// truncated result is never the same as a whole one.
func (r Rule) Same(gold, pred *Result, goldSQL string) bool {
	if gold.Truncated != pred.Truncated {
		return false
	}
	switch r {
	case Bird:
		return sameSets(gold, pred)
	case TestSuite:
		return sameTables(gold, pred, strings.Contains(strings.ToLower(goldSQL), "order by"))
	case Strict:
		return sameStrictly(gold, pred, ordersItsRows(goldSQL))
	}
	panic(fmt.Sprintf("sqlexec: rule %q did not come from ParseRule", string(r)))
}

// ordersItsRows reports whether the outermost statement has an ORDER BY.
func ordersItsRows(query string) bool {
	for _, c := range sql.Clauses(query) {
		if c.Kind == sql.ClauseOrderBy {
			return true
		}
	}
	return false
}
