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

// arithmeticSwaps pairs the operators of arithmetic.
var arithmeticSwaps = map[string]string{"+": "-", "-": "+", "*": "/", "/": "*"}

// changeArithmetic exchanges + and -, * and /, and the operands of - and /.
func changeArithmetic(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Binary {
		return
	}
	if other, ok := arithmeticSwaps[n.Value]; ok {
		propose(n, relabelled(n, other))
	}
	if n.Value == "-" || n.Value == "/" {
		c := n.Clone()
		c.Children[0], c.Children[1] = c.Children[1], c.Children[0]
		propose(n, c)
	}
}

// swapCase exchanges the results of a CASE's last WHEN and its ELSE, and changes
// its conditions as in WHERE.
func swapCase(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	switch n.Kind {
	case sql.Case:
		last := len(n.Children) - 1
		if n.Children[last].Kind != sql.Else || n.Children[last-1].Kind != sql.When {
			return
		}
		c := n.Clone()
		when, other := c.Children[last-1], c.Children[last]
		when.Children[1], other.Children[0] = other.Children[0], when.Children[1]
		propose(n, c)
	case sql.When:
		sql.Walk(n.Children[0], func(part *sql.Node) bool {
			changeComparison(q, part, propose)
			changeLiteral(q, part, propose)
			return true
		})
	}
}

// dropItem leaves out one of several projected items.
func dropItem(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind == sql.Projection {
		dropKey(q, n, propose)
	}
}
