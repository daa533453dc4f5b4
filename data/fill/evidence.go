package fill

import "caper/sql"

// observe takes from a query what it tells about values: which columns are
// compared with each other and so hold the same kind of thing, which literals a
// column is compared with, what is added up, and where a NULL would spoil a NOT IN.
func (q *query) observe() {
	sql.Walk(q.tree, func(n *sql.Node) bool {
		switch n.Kind {
		case sql.Compare, sql.Is, sql.Like, sql.Between:
			q.observeComparison(n)
		case sql.In:
			q.observeIn(n)
		case sql.Using:
			q.observeUsing(n)
		case sql.Aggregate:
			if n.Value == "sum" || n.Value == "avg" {
				if c := q.inner(n); c != nil {
					c.domain.root().summed = true
				}
			}
		case sql.Compound:
			first := outputs(n)
			for _, c := range n.Children {
				if c.Kind == sql.SetOp {
					q.uniteAll(first, outputs(c.Children[0]))
				}
			}
		}
		return true
	})
}

func (q *query) observeComparison(n *sql.Node) {
	for i, side := range n.Children {
		column := q.inner(side)
		if column == nil {
			continue
		}
		for j, other := range n.Children {
			switch {
			case i == j:
			case other.Kind == sql.Subquery:
				if exprs := outputs(other.Children[0]); len(exprs) == 1 {
					q.unite(side, exprs[0])
				}
			case other.Kind == sql.Column && q.column(other) != nil:
				q.unite(side, other)
			default:
				if value, ok := q.literal(other); ok {
					column.domain.root().learn(n, value, q.partOf(side))
				}
			}
		}
	}
	// 'x' = (SELECT name ...)
	if len(n.Children) == 2 && n.Children[1].Kind == sql.Subquery {
		if value, ok := q.literal(n.Children[0]); ok {
			q.learnOutput(n, value, n.Children[1])
		}
	}
}

func (q *query) observeIn(n *sql.Node) {
	left, right := n.Children[0], n.Children[1]
	column := q.inner(left)
	switch right.Kind {
	case sql.List:
		for _, item := range right.Children {
			if value, ok := q.literal(item); ok && column != nil {
				column.domain.root().learn(n, value, q.partOf(left))
			}
		}
	case sql.Subquery:
		exprs := outputs(right.Children[0])
		if len(exprs) != 1 {
			return
		}
		q.unite(left, exprs[0])
		if c := q.column(exprs[0]); c != nil && n.Value == "NOT IN" {
			c.noNull = true
		}
		if value, ok := q.literal(left); ok {
			q.learnOutput(n, value, right)
		}
	}
}

// learnOutput notes a literal that is looked for among a sub-query's results.
func (q *query) learnOutput(n *sql.Node, value any, subquery *sql.Node) {
	if exprs := outputs(subquery.Children[0]); len(exprs) == 1 {
		if c := q.column(exprs[0]); c != nil {
			c.domain.root().learn(n, value, nil)
		}
	}
}

// observeUsing unites the columns of all sources of the block that have the name.
func (q *query) observeUsing(using *sql.Node) {
	for _, name := range using.Children {
		var first *column
		for _, source := range q.scopes.Scope(using.Block()).Sources {
			if source.Table == nil {
				continue
			}
			c := q.stored(source, source.Find(name.Value))
			if c != nil && first != nil {
				unite(first, c)
			} else if c != nil {
				first = c
			}
		}
	}
}

func (q *query) uniteAll(a, b []*sql.Node) {
	for i := range min(len(a), len(b)) {
		q.unite(a[i], b[i])
	}
}

// unite notes that two expressions are compared. Only plain columns share their
// values: the maximum of a column is not its twin.
func (q *query) unite(a, b *sql.Node) {
	if a, b := q.column(a), q.column(b); a != nil && b != nil {
		unite(a, b)
	}
}
