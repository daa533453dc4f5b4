package eval

import (
	"fmt"
	"slices"

	"caper/eval/exactmatch"
	"caper/sqlexec"
)

// Rule is a way to judge a prediction by execution. Each is the strict rule with the
// quirks of one official evaluator.
type Rule string

const (
	// Spider is the rule of Spider's first evaluator (taoyds/spider).
	Spider Rule = "spider"
	// TestSuite is the rule of Spider's official evaluator since October 2020
	// (taoyds/test-suite-sql-eval).
	TestSuite Rule = Rule(sqlexec.TestSuite)
	// Bird is BIRD's rule.
	Bird Rule = Rule(sqlexec.Bird)
	// Strict has no quirks: the same bag of rows on every variant of the database,
	// or the same list where gold's outermost statement has ORDER BY.
	Strict Rule = Rule(sqlexec.Strict)
)

// ParseRule reads a rule's name.
func ParseRule(name string) (Rule, error) {
	if rules := []Rule{Spider, TestSuite, Bird, Strict}; !slices.Contains(rules, Rule(name)) {
		return "", fmt.Errorf("rule %q: want spider, test-suite, bird or strict", name)
	}
	return Rule(name), nil
}

// Quirks of how an evaluator is used, beside those of package sqlexec.
const (
	// OneDatabase: variants of the database in its folder are not looked at.
	OneDatabase sqlexec.Quirk = "one-database"
	// SharedTime: the time limit is for gold and prediction together.
	SharedTime sqlexec.Quirk = "shared-time"
	// SelectKeys: a column is found by its expression, as the exact-match parser
	// reads it, and not by its place; of * only the first column is compared.
	SelectKeys sqlexec.Quirk = "select-keys"
	// AggregateDropped: the aggregate is no part of a column's expression, so that
	// of max(a), min(a) only the last is compared.
	AggregateDropped sqlexec.Quirk = "aggregate-dropped"
	// Unreadable: a prediction that the exact-match parser cannot read is wrong.
	Unreadable sqlexec.Quirk = "unreadable"
	// ForeignKeysMerged: columns that a foreign key connects are one column.
	ForeignKeysMerged = sqlexec.Quirk(exactmatch.ForeignKeysMerged)
)

// Quirks returns what the rule does beside the strict one.
func (r Rule) Quirks() sqlexec.Quirks {
	switch r {
	case Spider:
		return sqlexec.Quirks{OneDatabase, SecondSemicolon, sqlexec.ExactFloats, sqlexec.BadBytesFail, AggregateDropped, ForeignKeysMerged,
			sqlexec.OrderAlways, Unreadable, SelectKeys}
	case TestSuite:
		return append(sqlexec.Quirks{sqlexec.ValueWord, sqlexec.FirstStatement, NoStatement, SecondSemicolon}, sqlexec.TestSuite.Quirks()...)
	case Bird:
		return append(sqlexec.Quirks{OneDatabase, SharedTime, NoStatement, SecondSemicolon}, sqlexec.Bird.Quirks()...)
	}
	return nil
}

// MatchQuirks are those of an exact-match script.
func MatchQuirks(script exactmatch.Script) (quirks sqlexec.Quirks) {
	if script == exactmatch.TestSuite {
		quirks = append(quirks, sqlexec.ValueWord)
	}
	for _, q := range script.Quirks() {
		quirks = append(quirks, sqlexec.Quirk(q))
	}
	return quirks
}

// CheckQuirks refuses names that are not among an evaluator's quirks.
func CheckQuirks(names []string, quirks sqlexec.Quirks) (sqlexec.Quirks, error) {
	var chosen sqlexec.Quirks
	for _, name := range names {
		if !quirks.Has(sqlexec.Quirk(name)) {
			return nil, fmt.Errorf("quirk %q: want some of %v", name, quirks)
		}
		chosen = append(chosen, sqlexec.Quirk(name))
	}
	return chosen, nil
}

// Reason says in one line what a quirk does.
func Reason(q sqlexec.Quirk) string { return reasons[q] }

var reasons = map[sqlexec.Quirk]string{
	sqlexec.ValueWord:         `the letters "value" in the prediction are replaced by 1`,
	sqlexec.OperatorsJoined:   `"> =", "< =" and "! =" are joined before the query runs`,
	sqlexec.CurrentYear:       "YEAR(CURDATE()) is replaced by 2020",
	sqlexec.DistinctStripped:  "DISTINCT is removed from both queries, also inside COUNT",
	sqlexec.FirstStatement:    "only the first statement runs",
	sqlexec.SetOfRows:         "duplicate rows count once",
	sqlexec.OrderIgnored:      "the order of rows does not count, whatever gold says",
	sqlexec.OrderAlways:       "the order of rows counts, whatever gold says",
	sqlexec.OrderByAnywhere:   `the order of rows counts when gold's text has "order by" anywhere, and only then`,
	sqlexec.ColumnPermutation: "columns may stand in any order",
	sqlexec.EmptyWidth:        "two empty results are equal whatever their columns",
	sqlexec.ExactFloats:       "numbers that differ by rounding alone are not equal",
	sqlexec.RowSortCheck:      "a pre-check by printed text refuses tables that are equal",
	sqlexec.BadBytesDropped:   "bytes that are not UTF-8 are dropped from texts",
	sqlexec.BadBytesFail:      "a text that is not UTF-8 fails the comparison",
	NoStatement:               "a prediction without a statement gives an empty result",
	SecondSemicolon:           "a second semicolon behind the statement is an error",
	OneDatabase:               "only one database of the folder is looked at",
	SharedTime:                "gold and prediction share one time limit",
	SelectKeys:                "columns are found by their SELECT expression, not by their place",
	AggregateDropped:          "a column's aggregate is no part of its expression: of max(a), min(a) the last counts",
	Unreadable:                "the exact-match parser cannot read the prediction",
	ForeignKeysMerged:         "columns that a foreign key connects are taken for one",

	sqlexec.Quirk(exactmatch.ValuesDropped):         "values in conditions are not compared",
	sqlexec.Quirk(exactmatch.DistinctDropped):       "DISTINCT is not compared",
	sqlexec.Quirk(exactmatch.LimitValueDropped):     "the number behind LIMIT is not compared",
	sqlexec.Quirk(exactmatch.NestedLimitDropped):    "the number behind LIMIT is not compared in sub-queries either",
	sqlexec.Quirk(exactmatch.OneDirection):          "the last ASC or DESC is taken for all of ORDER BY",
	sqlexec.Quirk(exactmatch.JoinConditionsIgnored): "conditions of joins are not compared",
	sqlexec.Quirk(exactmatch.AndOrAsSet):            "of AND and OR only the set is compared",
	sqlexec.Quirk(exactmatch.SingleTableUnchecked):  "the table is not compared where gold reads one only",
}
