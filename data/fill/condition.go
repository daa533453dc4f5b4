package fill

import (
	"slices"
	"strings"

	"caper/sql"
)

// condition restricts the unknowns so that the condition holds, or, where holds is
// false, does not. Of alternatives one is drawn. What it does not understand, it
// leaves to chance.
func (w *witness) condition(n *sql.Node, holds bool, view sources) {
	switch n.Kind {
	case sql.And, sql.Or:
		if (n.Kind == sql.And) != holds {
			w.condition(pick(w.r, n.Children), holds, view)
			return
		}
		for _, c := range n.Children {
			w.condition(c, holds, view)
		}
	case sql.Not:
		w.condition(n.Children[0], !holds, view)
	case sql.Compare:
		operator := n.Value
		if !holds {
			operator = opposite[operator]
		}
		w.compare(operator, n.Children[0], n.Children[1], view)
	case sql.Is:
		operator := "="
		if strings.Contains(n.Value, "NOT") != strings.Contains(n.Value, "DISTINCT") == holds {
			operator = "!="
		}
		w.compare(operator, n.Children[0], n.Children[1], view)
	case sql.NullTest:
		if u := w.term(n.Children[0], view); u != nil && (n.Value == "IS NULL") == holds {
			unify(u, w.constant(nil))
		}
	case sql.Like:
		operator, negated := strings.CutPrefix(n.Value, "NOT ")
		if operator == "LIKE" {
			if negated == holds {
				operator = "NOT LIKE"
			}
			w.restrict(operator, w.term(n.Children[0], view), w.term(n.Children[1], view))
		}
	case sql.Between:
		if (n.Value == "BETWEEN") == holds {
			w.compare(">=", n.Children[0], n.Children[1], view)
			w.compare("<=", n.Children[0], n.Children[2], view)
		} else {
			w.compare("<", n.Children[0], n.Children[1], view)
		}
	case sql.In:
		w.in(n, (n.Value == "IN") == holds, view)
	case sql.Exists:
		if holds {
			w.block(n.Children[0], view)
		} else {
			w.avoidCorrelated(n.Children[0], view)
		}
	}
}

// opposite gives the comparison that holds where one does not.
var opposite = map[string]string{"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

func (w *witness) compare(operator string, left, right *sql.Node, view sources) {
	if p := w.query.partOf(left); p != nil {
		if a, b := w.term(p.argument, view), w.term(right, view); a != nil && b != nil {
			w.restrictions = append(w.restrictions, restriction{operator, a, b, p})
		}
		return
	}
	a, b := w.term(left, view), w.term(right, view)
	if operator == "=" {
		unify(a, b)
		return
	}
	w.restrict(operator, a, b)
}

func (w *witness) in(n *sql.Node, holds bool, view sources) {
	value, right := w.term(n.Children[0], view), n.Children[1]
	switch {
	case right.Kind == sql.List && holds:
		unify(value, w.term(pick(w.r, right.Children), view))
	case right.Kind == sql.List:
		for _, item := range right.Children {
			w.restrict("!=", value, w.term(item, view))
		}
	case right.Kind != sql.Subquery:
	case !holds:
		w.avoid(value)
	case right.Children[0].Child(sql.Limit) != nil:
		unify(value, w.scalar(right.Children[0], view))
	default:
		unify(value, w.member(right.Children[0], view))
	}
}

// avoidCorrelated makes fresh what a sub-query that must find nothing looks for.
func (w *witness) avoidCorrelated(b *sql.Node, view sources) {
	sql.Walk(b, func(n *sql.Node) bool {
		if n.Kind == sql.Column {
			if binding := w.query.scopes.Binding(n); binding.Meaning == sql.MeansColumn {
				w.avoid(w.lookUp(binding.Source, binding.Column, view))
			}
		}
		return true
	})
}

// maxGroup bounds the rows drafted for one group.
const maxGroup = 120

// groupSize is the number of rows of a group that satisfies a HAVING condition on
// counts, 1 where there is none, and the column of which it counts different values.
func (w *witness) groupSize(n *sql.Node) (size int, distinct *sql.Node) {
	size = 1
	if n.Kind == sql.And {
		for _, c := range n.Children {
			s, d := w.groupSize(c)
			size = max(size, s)
			if d != nil {
				distinct = d
			}
		}
		return size, distinct
	}
	if len(n.Children) < 2 || n.Children[0].Kind != sql.Aggregate || n.Children[0].Value != "count" {
		return size, nil
	}
	count := n.Children[0]
	if len(count.Children) > 1 && slices.ContainsFunc(count.Children, func(c *sql.Node) bool { return c.Kind == sql.Distinct }) {
		distinct = count.Children[0]
	}
	bound := w.term(n.Children[1], nil)
	if bound == nil || !bound.known {
		return size, distinct
	}
	size = int(float(bound.value))
	switch {
	case n.Value == ">" || n.Value == "!=":
		size++
	case n.Value == "<":
		size--
	}
	return min(max(size, 1), maxGroup), distinct
}

// having treats an aggregate over a group of one row as that row's value.
func (w *witness) having(n *sql.Node, view sources) {
	if n.Kind == sql.And {
		for _, c := range n.Children {
			w.having(c, view)
		}
		return
	}
	w.condition(n, true, view)
}
