package curriculum

import "caper/sql"

// easier proposes statements that ask for less than q does: without one of its conditions,
// clauses, columns, joins or levels of nesting.
func (q *query) easier(propose func(change string, edit func(e *editing) bool)) {
	block := first(q.tree)
	if block.Kind != sql.Select {
		return
	}
	for _, kind := range []sql.Kind{sql.Where, sql.Having} {
		for i := range conditions(block.Child(kind)) {
			propose("without a condition", func(e *editing) bool {
				widen(conditions(e.block.Child(kind))[i])
				return true
			})
		}
	}
	propose("without an order", func(e *editing) bool {
		drop(e.tree.Child(sql.Limit))
		return drop(e.tree.Child(sql.OrderBy))
	})
	propose("without a limit", func(e *editing) bool { return drop(e.tree.Child(sql.Limit)) })
	for i := range block.Child(sql.Projection).Children {
		propose("without a column", func(e *editing) bool { return len(q.items()) > 1 && drop(e.block.Child(sql.Projection).Children[i]) })
	}
	propose("without groups", ungroup)
	if from := block.Child(sql.From); from != nil && q.tree.Kind == sql.Select {
		for i := 1; i < len(from.Children); i++ {
			propose("without a join", func(e *editing) bool { return e.unjoin(e.block.Child(sql.From).Children[i]) })
		}
	}
	q.flatter(propose)
}

func (q *query) items() []*sql.Node { return first(q.tree).Child(sql.Projection).Children }

// ungroup asks for the aggregates of all rows together.
func ungroup(e *editing) bool {
	by, projection := e.block.Child(sql.GroupBy), e.block.Child(sql.Projection)
	if by == nil || e.tree != e.block {
		return false
	}
	var kept []*sql.Node
	for _, item := range projection.Children {
		if hasAggregate(item) {
			kept = append(kept, item)
		}
	}
	for _, kind := range []sql.Kind{sql.GroupBy, sql.Having, sql.OrderBy, sql.Limit} {
		drop(e.block.Child(kind))
	}
	projection.Children = kept
	return len(kept) > 0
}

// unjoin leaves out a joined table with the columns, conditions and orders that need it.
func (e *editing) unjoin(join *sql.Node) bool {
	table := join.Children[0]
	if table.Kind != sql.Table || e.nests() {
		return false
	}
	from := join.Parent
	drop(join)
	if by := e.block.Child(sql.GroupBy); by != nil && e.uses(by, table) || e.uses(from, table) {
		return false
	}
	for _, kind := range []sql.Kind{sql.Where, sql.Having} {
		for again := true; again; {
			again = false
			for _, c := range conditions(e.block.Child(kind)) {
				if e.uses(c, table) {
					widen(c)
					again = true
					break
				}
			}
		}
	}
	if by := e.block.Child(sql.OrderBy); by != nil && e.uses(by, table) {
		drop(by)
		drop(e.block.Child(sql.Limit))
	}
	projection := e.block.Child(sql.Projection)
	for i := len(projection.Children) - 1; i >= 0; i-- {
		if e.uses(projection.Children[i], table) {
			drop(projection.Children[i])
		}
	}
	return len(projection.Children) > 0
}

// flatter takes away a set operation, a common table expression that only picks rows, and
// what is made of a sub-query in FROM.
func (q *query) flatter(propose func(string, func(*editing) bool)) {
	if q.tree.Kind == sql.Compound {
		propose("one operand", func(e *editing) bool {
			for _, kind := range []sql.Kind{sql.SetOp, sql.OrderBy, sql.Limit} {
				for e.tree.Child(kind) != nil {
					drop(e.tree.Child(kind))
				}
			}
			*e.tree = *e.block
			return true
		})
	}
	propose("without nesting", func(e *editing) bool {
		with, from := e.block.Child(sql.With), e.block.Child(sql.From)
		if with == nil || len(with.Children) != 1 || from == nil || len(from.Children) != 1 || from.Children[0].Value != with.Children[0].Value {
			return false
		}
		inner := with.Children[0].Children[len(with.Children[0].Children)-1]
		table := inner.Child(sql.From)
		if inner.Kind != sql.Select || table == nil || len(table.Children) != 1 || table.Children[0].Kind != sql.Table ||
			inner.Child(sql.Projection).Children[0].Children[0].Kind != sql.Star {
			return false
		}
		drop(with)
		from.Children[0].Value = table.Children[0].Value
		return true
	})
	propose("without nesting", func(e *editing) bool {
		from := e.tree.Child(sql.From)
		if e.tree.Kind != sql.Select || from == nil || len(from.Children) != 1 || from.Children[0].Kind != sql.Derived {
			return false
		}
		inner := from.Children[0].Children[0]
		for _, item := range inner.Child(sql.Projection).Children {
			drop(item.Child(sql.Alias))
		}
		*e.tree = *inner
		return true
	})
}
