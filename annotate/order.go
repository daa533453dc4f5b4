package annotate

import (
	"slices"
	"strings"

	"caper/sql"
)

// orderLike puts operands of gold's clause whose order means nothing into the order
// in which the wrong query has them: of AND, OR, IN lists and GROUP BY, and the two
// sides of a comparison. What both say alike then stays, byte for byte.
func orderLike(gold, wrong *sql.Node) {
	place := make(map[string]int) // of each operand in the wrong clause, and of its column
	sql.Walk(wrong, func(n *sql.Node) bool {
		at := len(place)
		place[orderKey(n)] = at
		if column := columnKey(n); column != "" {
			if _, found := place[column]; !found {
				place[column] = at
			}
		}
		return true
	})
	sql.Walk(gold, func(n *sql.Node) bool {
		switch n.Kind {
		case sql.Compare:
			turn(n, place)
		case sql.And, sql.Or, sql.List, sql.GroupBy:
			for _, c := range n.Children {
				if c.Kind == sql.Compare {
					turn(c, place)
				}
			}
			reorder(n, place)
		}
		return true
	})
}

// orderKey tells operands apart; letter case does not.
func orderKey(n *sql.Node) string { return strings.ToLower(sql.Render(n)) }

// columnKey tells which column a condition is about, "" for none.
func columnKey(n *sql.Node) string {
	key := ""
	sql.Walk(n, func(c *sql.Node) bool {
		if c.Kind == sql.Column && key == "" {
			key = "about " + orderKey(c)
		}
		return key == ""
	})
	return key
}

// turned is the operator with its sides exchanged.
var turned = map[string]string{"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

// turn exchanges the sides of a comparison where the wrong clause has it so.
func turn(compare *sql.Node, place map[string]int) {
	if _, found := place[orderKey(compare)]; found {
		return
	}
	other := compare.Clone()
	other.Value = turned[compare.Value]
	slices.Reverse(other.Children)
	if _, found := place[orderKey(other)]; found {
		compare.Value = other.Value
		slices.Reverse(compare.Children)
	}
}

// reorder sorts the operands that the wrong clause has, too, or has others about the
// same column for, by their places there, each followed by the others that stood
// behind it.
func reorder(n *sql.Node, place map[string]int) {
	type operand struct {
		*sql.Node
		place int
	}
	last := -1
	operands := make([]operand, len(n.Children))
	for i, c := range n.Children {
		if at, found := place[orderKey(c)]; found {
			last = at
		} else if at, found := place[columnKey(c)]; found {
			last = at
		}
		operands[i] = operand{c, last}
	}
	slices.SortStableFunc(operands, func(a, b operand) int { return a.place - b.place })
	for i, o := range operands {
		n.Children[i] = o.Node
	}
}
