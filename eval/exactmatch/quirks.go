package exactmatch

import "slices"

// Quirk is a difference between two queries that the official script overlooks.
type Quirk string

const (
	// ValuesDropped: texts, numbers and columns that a condition compares with do
	// not count, except in a sub-query in FROM.
	ValuesDropped Quirk = "values-dropped"
	// DistinctDropped: DISTINCT does not count outside sub-queries.
	DistinctDropped Quirk = "distinct-dropped"
	// ForeignKeysMerged: columns that a foreign key connects are one column.
	ForeignKeysMerged Quirk = "fk-merged"
	// LimitValueDropped: LIMIT counts as there or not there, outside sub-queries.
	LimitValueDropped Quirk = "limit-value-dropped"
	// NestedLimitDropped: the same in sub-queries. In the test-suite script only.
	NestedLimitDropped Quirk = "nested-limit-dropped"
	// OneDirection: the last ASC or DESC that is written holds for all of ORDER BY.
	OneDirection Quirk = "one-direction"
	// JoinConditionsIgnored: conditions behind ON are not compared.
	JoinConditionsIgnored Quirk = "on-ignored"
	// AndOrAsSet: of the words between conditions only the set of them counts.
	AndOrAsSet Quirk = "and-or-set"
	// SingleTableUnchecked: where gold reads one table only, the tables do not
	// count. In the first release only.
	SingleTableUnchecked Quirk = "single-table-unchecked"
)

// Quirks is a set of them.
type Quirks []Quirk

func (q Quirks) has(x Quirk) bool { return slices.Contains(q, x) }

// Without returns the set without x.
func (q Quirks) Without(x Quirk) Quirks {
	return slices.DeleteFunc(slices.Clone(q), func(y Quirk) bool { return x == y })
}
