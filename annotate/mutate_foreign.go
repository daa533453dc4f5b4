package annotate

import (
	"strings"

	"caper/sql"
)

// foreign lists the operators that put in a construct of which nothing in the
// query speaks, by the clause that takes it in. They are tried when the others
// have given too little: a reward model that meets such constructs in wrong
// queries alone would learn to shun them, and nothing else.
var foreign = map[sql.Kind][]operator{
	sql.Projection: {
		{"select.filter", addFilter},
		{"select.window", openWindow},
		{"select.function", anyOf(changeCaseOfText, takeYear)},
	},
	sql.Where: {
		{"where.function", anyOf(changeCaseOfText, takeYear)},
		{"where.expression", castToText},
	},
	sql.OrderBy: {{"order_by.expression", castToText}},
}

// addFilter aggregates over some rows.
func addFilter(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Aggregate || n.Child(sql.Filter) != nil || n.Child(sql.Over) != nil {
		return
	}
	for _, condition := range q.conditions(n.Block()) {
		propose(n, with(n, branch(sql.Filter, "", condition)))
	}
}

// openWindow gives every row the aggregate of all rows, or of those that share a
// column.
func openWindow(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	isSimple := n.Kind == sql.Aggregate && n.Child(sql.Over) == nil && n.Child(sql.Distinct) == nil
	if !isSimple || n.Block().Child(sql.GroupBy) != nil {
		return
	}
	propose(n, with(n, branch(sql.Over, "")))
	for _, c := range q.columnsIn(n.Block()) {
		propose(n, with(n, branch(sql.Over, "", branch(sql.PartitionBy, "", c.Node))))
	}
}

// changeCaseOfText takes a text column in capitals or in small letters.
func changeCaseOfText(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if isWhole(n) && q.scopes.Affinity(n) == sql.AffinityText {
		propose(n, branch(sql.Function, "upper", n.Clone()))
		propose(n, branch(sql.Function, "lower", n.Clone()))
	}
}

// castToText compares or sorts numbers as texts.
func castToText(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if isWhole(n) && q.scopes.Affinity(n).IsNumber() {
		propose(n, branch(sql.Cast, "TEXT", n.Clone()))
	}
}

// takeYear takes the year of a date.
func takeYear(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if isWhole(n) && q.isDate(n) {
		propose(n, branch(sql.Function, "strftime", &sql.Node{Kind: sql.String, Value: "%Y"}, n.Clone()))
	}
}

// isWhole reports that n is a column that is projected, compared or sorted by as
// it is.
func isWhole(n *sql.Node) bool {
	if n.Kind != sql.Column {
		return false
	}
	switch n.Parent.Kind {
	case sql.Item, sql.Compare, sql.Like, sql.In, sql.OrderTerm:
		return true
	}
	return false
}

// isDate reports that n is a column of dates, by its declared type.
func (q *query) isDate(n *sql.Node) bool {
	table := q.baseTable(n)
	if table == nil {
		return false
	}
	declared := strings.ToUpper(table.Columns[q.scopes.Binding(n).Column].Type)
	return strings.HasPrefix(declared, "DATE") || strings.HasPrefix(declared, "TIMESTAMP")
}
