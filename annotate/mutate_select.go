package annotate

import "caper/sql"

// sameNameElsewhere reads a qualified column from another joined table that has
// a column of the same name.
func sameNameElsewhere(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Column || n.Qualifier == "" {
		return
	}
	scope := q.scopes.Scope(n.Block())
	if scope == nil {
		return
	}
	for _, s := range scope.Sources {
		if s.Find(n.Value) < 0 || sameName(s.Name, n.Qualifier) {
			continue
		}
		c := n.Clone()
		c.Qualifier = s.Name
		propose(n, c)
	}
}

// aggregateSwaps pairs aggregates of one type.
var aggregateSwaps = map[string]string{"min": "max", "max": "min", "sum": "avg", "avg": "sum"}

// swapAggregate exchanges MIN and MAX, SUM and AVG, COUNT(x) and COUNT(DISTINCT x).
func swapAggregate(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Aggregate {
		return
	}
	if other, ok := aggregateSwaps[n.Value]; ok {
		propose(n, relabelled(n, other))
	}
	args := n.Arguments()
	if n.Value != "count" || len(args) != 1 || args[0].Kind == sql.Star {
		return
	}
	if mark := n.Child(sql.Distinct); mark != nil {
		propose(n, without(n, mark.Index()))
		return
	}
	c := n.Clone()
	rest := append([]*sql.Node{{Kind: sql.Distinct, Parent: c}}, c.Children[1:]...)
	c.Children = append(c.Children[:1:1], rest...)
	propose(n, c)
}

// changeCount counts the rows with a value where all rows are counted, and the
// other way round.
func changeCount(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Aggregate || n.Value != "count" || n.Child(sql.Distinct) != nil {
		return
	}
	args := n.Arguments()
	counts := func(what *sql.Node) {
		c := n.Clone()
		c.Children[0], what.Parent = what, c
		propose(n, c)
	}
	switch {
	case len(args) != 1:
	case args[0].Kind != sql.Star:
		counts(&sql.Node{Kind: sql.Star})
	default:
		for _, c := range q.columnsIn(n.Block()) {
			counts(c.Clone())
		}
	}
}

// dropFilter aggregates over all rows.
func dropFilter(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind == sql.Filter {
		propose(n.Parent, without(n.Parent, n.Index()))
	}
}

// toggleDistinct adds or removes the DISTINCT of a projection.
func toggleDistinct(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	switch {
	case n.Kind != sql.Projection:
	case n.Value == "DISTINCT":
		propose(n, relabelled(n, ""))
	default:
		propose(n, relabelled(n, "DISTINCT"))
	}
}

// dropItem leaves out one of several projected items.
func dropItem(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind == sql.Projection {
		dropKey(q, n, propose)
	}
}
