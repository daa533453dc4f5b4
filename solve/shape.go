package solve

import (
	"slices"
	"strings"

	"caper/sql"
)

// shapeOf is the structural signature of a statement (sirius.md 2.5): the set of base
// tables, the bag of projected expressions and the bag of aggregates, in canonical
// names. Conditions are no part of it: candidates that answer the same question about
// the same things have one shape, however they filter.
func shapeOf(tree *sql.Node, scopes *sql.Scopes, canonical *sql.Node) string {
	var tables, projected, aggregates []string
	sql.Walk(tree, func(n *sql.Node) bool {
		if s := scopes.Source(n); s != nil && n.Kind == sql.Table && s.Block == nil {
			tables = append(tables, strings.ToLower(n.Value))
		}
		return true
	})
	for _, unit := range sql.ClauseNodes(canonical) {
		if unit.Kind == sql.Projection {
			for _, expr := range unit.Children {
				projected = append(projected, sql.Render(expr))
			}
		}
	}
	sql.Walk(canonical, func(n *sql.Node) bool {
		if n.Kind == sql.Aggregate {
			aggregates = append(aggregates, sql.Render(n))
		}
		return true
	})
	slices.Sort(tables)
	slices.Sort(projected)
	slices.Sort(aggregates)
	return strings.Join(slices.Compact(tables), ", ") + " | " + strings.Join(projected, ", ") + " | " + strings.Join(aggregates, ", ")
}
