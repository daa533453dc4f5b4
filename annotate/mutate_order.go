package annotate

import (
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
