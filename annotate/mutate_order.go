package annotate

import (
	"slices"
	"strconv"
	"strings"

	"caper/sql"
)

// toggleDirection exchanges ascending and descending order.
func toggleDirection(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.OrderTerm {
		return
	}
	if rest, ok := strings.CutPrefix(n.Value, "ASC"); ok {
		propose(n, relabelled(n, "DESC"+rest))
	} else if rest, ok := strings.CutPrefix(n.Value, "DESC"); ok {
		propose(n, relabelled(n, "ASC"+rest))
	}
}

// changeNulls puts NULLs at the other end.
func changeNulls(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.OrderTerm {
		return
	}
	direction, nulls, written := strings.Cut(n.Value, " ")
	isFirst := direction == "ASC" // by default
	if written {
		isFirst = nulls == "NULLS FIRST"
	}
	if isFirst {
		propose(n, relabelled(n, direction+" NULLS LAST"))
	} else {
		propose(n, relabelled(n, direction+" NULLS FIRST"))
	}
}

// changeLimit changes the count by one, and 1 to 3.
func changeLimit(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Number || n.Parent.Kind != sql.Limit {
		return
	}
	count, err := strconv.Atoi(n.Value)
	if err != nil || count < 0 {
		return
	}
	propose(n, relabelled(n, strconv.Itoa(count+1)))
	switch {
	case count == 1:
		propose(n, relabelled(n, "3"))
	case count > 1:
		propose(n, relabelled(n, strconv.Itoa(count-1)))
	}
}

// changeOffset leaves the offset out or moves it by one.
func changeOffset(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Offset {
		return
	}
	propose(n.Parent, without(n.Parent, n.Index()))
	if count := n.Children[0]; count.Kind == sql.Number {
		for _, value := range neighbours(count) {
			propose(count, relabelled(count, value))
		}
	}
}

// setOperatorSwaps pairs the set operators.
var setOperatorSwaps = map[string][]string{
	"UNION": {"UNION ALL"}, "UNION ALL": {"UNION"},
	"INTERSECT": {"EXCEPT"}, "EXCEPT": {"INTERSECT"},
}

var swapSetOperator = swaps(setOperatorSwaps)

// changeSetOperator exchanges UNION and UNION ALL, INTERSECT and EXCEPT.
func changeSetOperator(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind == sql.SetOp {
		swapSetOperator(q, n, propose)
	}
}

// changeOperand makes the right operand of a set operation the first one under
// another condition.
func changeOperand(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.SetOp {
		return
	}
	first := operands(n.Parent)[0]
	if first.Kind != sql.Select {
		return
	}
	for _, condition := range q.conditions(first) {
		where := branch(sql.Where, "", condition)
		propose(n, branch(sql.SetOp, n.Value, conditioned(first, where)))
	}
}

// conditioned copies a block with another WHERE clause.
func conditioned(block, where *sql.Node) *sql.Node {
	if old := block.Child(sql.Where); old != nil {
		return replaced(block, old, where)
	}
	c := block.Clone()
	where.Parent = c
	c.Children = slices.Insert(c.Children, placeOf(sql.ClauseWhere, block), where)
	return c
}
