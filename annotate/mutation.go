package annotate

import (
	"strings"

	"caper/sql"
)

// mutation is one type-preserving change of a correct query (caper.md 1.4.3):
// new takes the place of old. The changed node is the root cause; where
// something is deleted, old is the parent of what goes. A nil new deletes the
// whole clause old. Where something is added (mutate_add.go), it is the root
// cause.
type mutation struct {
	operator string
	old, new *sql.Node
	adds     bool
}

// operator proposes mutations of one node of a query.
type operator struct {
	name    string
	propose proposer
}

type proposer = func(q *query, n *sql.Node, propose func(old, new *sql.Node))

// anyOf proposes what each of several does.
func anyOf(list ...proposer) proposer {
	return func(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
		for _, p := range list {
			p(q, n, propose)
		}
	}
}

// operators lists the operators by the clause that they change; those that add
// something are in additions and foreign.
var operators = map[sql.Kind][]operator{
	sql.Projection: {
		{"select.column", siblingColumn},
		{"select.table", sameNameElsewhere},
		{"select.aggregate", swapAggregate},
		{"select.count", changeCount},
		{"select.filter", dropFilter},
		{"select.distinct", toggleDistinct},
		{"select.arithmetic", changeArithmetic},
		{"select.literal", changeLiteral},
		{"select.comparison", changeComparison},
		{"select.case", changeCase},
		{"select.cast", changeCast},
		{"select.function", anyOf(changeFunction, changeDatePart)},
		{"select.window", changeWindow},
		{"select.item", dropItem},
	},
	sql.From: {
		{"from.key", changeJoinKey},
		{"from.join", changeJoinKind},
		{"from.table", neighbourTable},
		{"from.other_table", otherTable},
		{"from.dropped_join", dropJoin},
	},
	sql.Where: {
		{"where.comparison", changeComparison},
		{"where.bound", shiftBound},
		{"where.connective", swapConnective},
		{"where.literal", changeLiteral},
		{"where.pattern", changePattern},
		{"where.list", dropListItem},
		{"where.column", siblingColumn},
		{"where.expression", anyOf(changeArithmetic, changeCast)},
		{"where.function", anyOf(changeFunction, changeDatePart)},
		{"where.conjunct", dropConjunct},
		{"where.correlation", dropCorrelation},
		{"where.clause", dropWhere},
	},
	sql.GroupBy: {
		{"group_by.key", siblingColumn},
		{"group_by.drop", dropKey},
		{"group_by.clause", dropClause},
	},
	sql.Having: {
		{"having.comparison", changeComparison},
		{"having.condition", anyOf(swapConnective, dropConjunct)},
		{"having.literal", anyOf(changeLiteral, shiftBound)},
		{"having.aggregate", anyOf(swapAggregate, changeCount)},
		{"having.column", siblingColumn},
		{"having.clause", dropClause},
	},
	sql.Window: {
		{"window.definition", changeWindow},
	},
	sql.OrderBy: {
		{"order_by.direction", toggleDirection},
		{"order_by.nulls", changeNulls},
		{"order_by.key", siblingColumn},
		{"order_by.expression", anyOf(swapAggregate, changeCount, changeArithmetic, changeCast)},
		{"order_by.drop", dropKey},
		{"order_by.clause", dropClause},
	},
	sql.Limit: {
		{"limit.count", anyOf(changeLimit, changeOffset)},
		{"limit.clause", dropClause},
	},
	sql.SetOp: {
		{"setop.operator", changeSetOperator},
		{"setop.operand", changeOperand},
		{"setop.clause", dropClause},
	},
}

// scarceOperators need what few queries have: two conditions in HAVING, or a LIMIT
// of rows that the block does not sort. Drawn among a dozen others they would hardly
// ever be used.
var scarceOperators = map[string]bool{"having.condition": true, "order_by.added": true}

// clause is the clause that changes, nil where something is added.
func (m mutation) clause() *sql.Node {
	if m.adds {
		return nil
	}
	return m.old.Clause()
}

// relabelled is a copy of n with another value.
func relabelled(n *sql.Node, value string) *sql.Node {
	c := n.Clone()
	c.Value = value
	return c
}

// without is a copy of n that lacks its child i.
func without(n *sql.Node, i int) *sql.Node {
	c := n.Clone()
	c.Children = append(c.Children[:i:i], c.Children[i+1:]...)
	return c
}

// replaced copies the tree at n with old changed to new.
func replaced(n, old, new *sql.Node) *sql.Node {
	if n == old {
		return new.Clone()
	}
	c := *n
	c.Parent = nil
	c.Children = make([]*sql.Node, len(n.Children))
	for i, child := range n.Children {
		c.Children[i] = replaced(child, old, new)
		c.Children[i].Parent = &c
	}
	return &c
}

// siblingColumn puts another column of the same table and type in place of a
// column.
func siblingColumn(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Column {
		return
	}
	for _, sibling := range q.siblings(n) {
		propose(n, relabelled(n, sibling))
	}
}

// dropClause leaves a whole clause out.
func dropClause(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.IsClause() {
		propose(n, nil)
	}
}

// dropWhere leaves a WHERE clause out that is no correlation: that one is
// dropCorrelation's.
func dropWhere(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind == sql.Where && !q.isSoleCorrelation(n) {
		propose(n, nil)
	}
}

// dropKey leaves out one of several children of a clause.
func dropKey(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if !n.IsClause() || len(n.Children) < 2 {
		return
	}
	for i := range min(len(n.Children), maxChoices) {
		propose(n, without(n, i))
	}
}

// swaps proposes n with the value that table gives for its own.
func swaps(table map[string][]string) func(*query, *sql.Node, func(old, new *sql.Node)) {
	return func(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
		for _, value := range table[n.Value] {
			propose(n, relabelled(n, value))
		}
	}
}

// negated toggles the NOT before an operator.
func negated(value string) string {
	if bare, ok := strings.CutPrefix(value, "NOT "); ok {
		return bare
	}
	return "NOT " + value
}
