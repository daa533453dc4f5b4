package annotate

import (
	"strings"

	"caper/sql"
)

// comparisonSwaps lists the comparisons that take the place of one.
var comparisonSwaps = map[string][]string{
	"=": {"!="}, "!=": {"="},
	"<": {"<=", ">"}, "<=": {"<", ">="},
	">": {">=", "<"}, ">=": {">", "<="},
	"IS NULL": {"IS NOT NULL"}, "IS NOT NULL": {"IS NULL"},
}

var swapComparison = swaps(comparisonSwaps)

// changeComparison exchanges a comparison for its negation, its strict or
// reflexive form, or its mirror image, and toggles NOT before IN, LIKE, BETWEEN
// and EXISTS, and in IS.
func changeComparison(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	switch n.Kind {
	case sql.Compare, sql.NullTest:
		swapComparison(q, n, propose)
	case sql.In, sql.Like, sql.Between:
		propose(n, relabelled(n, negated(n.Value)))
	case sql.Is:
		if rest, ok := strings.CutPrefix(n.Value, "IS NOT"); ok {
			propose(n, relabelled(n, "IS"+rest))
		} else {
			propose(n, relabelled(n, "IS NOT"+strings.TrimPrefix(n.Value, "IS")))
		}
	case sql.Not:
		if n.Children[0].Kind == sql.Exists {
			propose(n, n.Children[0])
		}
	case sql.Exists:
		if n.Parent.Kind != sql.Not {
			c := n.Clone()
			not := &sql.Node{Kind: sql.Not, Children: []*sql.Node{c}}
			c.Parent = not
			propose(n, not)
		}
	}
}

// shiftBound moves a bound of BETWEEN by one.
func shiftBound(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Parent == nil || n.Parent.Kind != sql.Between || n.Index() == 0 {
		return
	}
	for _, value := range neighbours(n) {
		propose(n, relabelled(n, value))
	}
}

// swapConnective exchanges AND and OR. A chain of one connective is one node, so
// that the changed node takes up operands of its new kind, or is taken up by a
// parent of that kind.
func swapConnective(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	kind := sql.And
	switch n.Kind {
	case sql.And:
		kind = sql.Or
	case sql.Or:
	default:
		return
	}
	old, c := n, n.Clone()
	c.Kind = kind
	if n.Parent.Kind == kind {
		old = n.Parent
		outer := old.Clone()
		outer.Children[n.Index()], c = c, outer
	}
	var operands []*sql.Node
	for _, operand := range c.Children {
		if operand.Kind == kind {
			operands = append(operands, operand.Children...)
		} else {
			operands = append(operands, operand)
		}
	}
	c.Children = operands
	propose(old, c)
}

// dropConjunct leaves out one operand of AND or OR that looks at no block
// around its own.
func dropConjunct(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	q.dropOperands(n, false, propose)
}

// dropCorrelation leaves out a condition that ties a sub-query to the block
// around it.
func dropCorrelation(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	q.dropOperands(n, true, propose)
	if n.Kind == sql.Where && q.isSoleCorrelation(n) {
		propose(n, nil)
	}
}

// isSoleCorrelation reports that a WHERE clause is one correlated condition.
func (q *query) isSoleCorrelation(where *sql.Node) bool {
	condition := where.Children[0]
	return condition.Kind != sql.And && condition.Kind != sql.Or && q.isCorrelated(condition)
}

// dropOperands leaves out each operand of AND or OR that is correlated or is
// not. With two operands the other one takes the place of the connective, and
// their parent is what changes.
func (q *query) dropOperands(n *sql.Node, correlated bool, propose func(old, new *sql.Node)) {
	if n.Kind != sql.And && n.Kind != sql.Or {
		return
	}
	for i := range min(len(n.Children), maxChoices) {
		if q.isCorrelated(n.Children[i]) != correlated {
			continue
		}
		if len(n.Children) > 2 {
			propose(n, without(n, i))
			continue
		}
		parent := n.Parent
		c := parent.Clone()
		c.Children[n.Index()] = n.Children[1-i].Clone()
		propose(parent, c)
	}
}

// isCorrelated reports that a condition reads a source from outside the block it
// stands in.
func (q *query) isCorrelated(condition *sql.Node) bool {
	block, found := condition.Block(), false
	sql.Walk(condition, func(n *sql.Node) bool {
		source := q.scopes.Binding(n).Source
		found = found || n.Kind == sql.Column && source != nil && !isWithin(source.Node, block)
		return !found
	})
	return found
}

// dropListItem leaves out one of several values of an IN list.
func dropListItem(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.List || len(n.Children) < 2 {
		return
	}
	for i := range min(len(n.Children), maxChoices) {
		propose(n, without(n, i))
	}
}

// changePattern adds or takes away a wildcard at either end of a LIKE pattern.
func changePattern(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Parent == nil || n.Parent.Kind != sql.Like || n.Index() != 1 || !q.isText(n) || !strings.HasSuffix(n.Parent.Value, "LIKE") {
		return
	}
	core := strings.Trim(n.Value, "%")
	if core == "" {
		return
	}
	for _, pattern := range []string{core, core + "%", "%" + core, "%" + core + "%"} {
		if pattern != n.Value {
			propose(n, relabelled(n, pattern))
		}
	}
}
