package curriculum

import (
	"strings"

	"caper/sql"
)

// harder proposes statements that ask for more than q does: a condition, a join, an
// aggregate, an order, or nesting.
func (q *query) harder(propose func(change string, edit func(e *editing) bool)) {
	probe := &editing{tree: q.tree, block: first(q.tree), scopes: sql.Resolve(q.tree, q.schema), schema: q.schema}
	if first(q.tree).Kind != sql.Select {
		return
	}
	fields := probe.fields()
	for i, f := range fields {
		if f.key {
			continue
		}
		q.filters(i, f, propose)
		q.averages(i, f, propose)
		q.sorted(i, f, propose)
		q.grouped(i, f, propose)
	}
	q.having(propose)
	for i, key := range q.schema.ForeignKeys {
		q.joined(i, propose)
		q.related(key, fields, propose)
	}
}

// filters adds a comparison with a value that is there.
func (q *query) filters(i int, f field, propose func(string, func(*editing) bool)) {
	comparisons := []string{"="}
	if f.isNumber() {
		comparisons = []string{">", "<"}
	}
	for _, v := range q.values(f.source.table.Name, f.column.Name) {
		for _, comparison := range comparisons {
			propose("filter", func(e *editing) bool {
				narrow(e.block, branch(sql.Compare, comparison, e.fields()[i].Node, v.Clone()))
				return true
			})
		}
	}
}

// averages compares a number with its mean over the table.
func (q *query) averages(i int, f field, propose func(string, func(*editing) bool)) {
	if !f.isNumber() {
		return
	}
	for _, comparison := range []string{">", "<"} {
		propose("nesting", func(e *editing) bool {
			mean := branch(sql.Aggregate, "avg", &sql.Node{Kind: sql.Column, Value: f.column.Name})
			narrow(e.block, branch(sql.Compare, comparison, e.fields()[i].Node, branch(sql.Subquery, "", rowsOf(f.source.table.Name, mean))))
			return true
		})
	}
}

// rowsOf is SELECT expr FROM table.
func rowsOf(table string, expr *sql.Node) *sql.Node {
	return branch(sql.Select, "", branch(sql.Projection, "", branch(sql.Item, "", expr)), branch(sql.From, "", &sql.Node{Kind: sql.Table, Value: table}))
}

// sorted asks for the first rows in an order.
func (q *query) sorted(i int, f field, propose func(string, func(*editing) bool)) {
	if !f.isNumber() || q.tree.Kind != sql.Select || q.tree.Child(sql.OrderBy) != nil || q.tree.Child(sql.Limit) != nil {
		return
	}
	for _, direction := range []string{"ASC", "DESC"} {
		for _, rows := range []string{"1", "3", "5"} {
			propose("first rows", func(e *editing) bool {
				if e.aggregates() || e.block.Child(sql.GroupBy) != nil || e.block.Child(sql.Projection).Value != "" {
					return false
				}
				put(e.block, branch(sql.OrderBy, "", branch(sql.OrderTerm, direction, e.fields()[i].Node)))
				put(e.block, branch(sql.Limit, "", number(rows)))
				return true
			})
		}
	}
}

// grouped asks for an aggregate of all rows by the values of a column.
func (q *query) grouped(i int, f field, propose func(string, func(*editing) bool)) {
	if f.isNumber() || q.tree.Kind != sql.Select {
		return
	}
	propose("groups", func(e *editing) bool {
		projection := e.block.Child(sql.Projection)
		if !e.aggregates() || e.block.Child(sql.GroupBy) != nil || e.block.Child(sql.OrderBy) != nil {
			return false
		}
		item := branch(sql.Item, "", e.fields()[i].Node)
		projection.Children, item.Parent = append([]*sql.Node{item}, projection.Children...), projection
		put(e.block, branch(sql.GroupBy, "", e.fields()[i].Node))
		return true
	})
}

// having keeps the groups of some size.
func (q *query) having(propose func(string, func(*editing) bool)) {
	for _, size := range []string{"1", "2", "3"} {
		for _, comparison := range []string{">", "<="} {
			propose("having", func(e *editing) bool {
				if e.block.Child(sql.GroupBy) == nil || e.block.Child(sql.Having) != nil {
					return false
				}
				put(e.block, branch(sql.Having, "", branch(sql.Compare, comparison, countRows(), number(size))))
				return true
			})
		}
	}
}

// joined joins, by a foreign key, the table that one of the block's refers to, and shows one
// of its columns.
func (q *query) joined(key int, propose func(string, func(*editing) bool)) {
	k := q.schema.ForeignKeys[key]
	parent := q.schema.Table(k.RefTable)
	if parent == nil || q.tree.Kind != sql.Select {
		return
	}
	for i := range parent.Columns {
		if c := parent.Columns[i]; !c.PrimaryKey {
			propose("join", func(e *editing) bool { return e.join(k, parent.Name, c.Name) })
		}
	}
}

func (e *editing) join(k sql.ForeignKey, parent, shown string) bool {
	sources := e.sources()
	child := ""
	for _, s := range sources {
		if strings.EqualFold(s.table.Name, parent) {
			return false
		}
		if strings.EqualFold(s.table.Name, k.Table) {
			child = s.name
		}
	}
	projection := e.block.Child(sql.Projection)
	if child == "" || e.nests() || e.aggregates() || e.isForeign(parent, shown) || projection.Value != "" {
		return false
	}
	sql.Walk(e.block, func(n *sql.Node) bool {
		if b := e.scopes.Binding(n).Source; n.Kind == sql.Column && n.Qualifier == "" && b != nil {
			n.Qualifier = b.Name
		}
		return true
	})
	column := func(table, name string) *sql.Node { return &sql.Node{Kind: sql.Column, Qualifier: table, Value: name} }
	from := e.block.Child(sql.From)
	on := branch(sql.On, "", branch(sql.Compare, "=", column(child, k.Column), column(parent, k.RefColumn)))
	join := branch(sql.Join, "JOIN", &sql.Node{Kind: sql.Table, Value: parent}, on)
	from.Children, join.Parent = append(from.Children, join), from
	item := branch(sql.Item, "", column(parent, shown))
	projection.Children, item.Parent = append(projection.Children, item), projection
	return true
}

// related keeps the rows that others refer to, and those that refer to some that a
// condition picks.
func (q *query) related(k sql.ForeignKey, fields []field, propose func(string, func(*editing) bool)) {
	for i, f := range fields {
		isKey := strings.EqualFold(f.source.table.Name, k.RefTable) && strings.EqualFold(f.column.Name, k.RefColumn)
		refers := strings.EqualFold(f.source.table.Name, k.Table) && strings.EqualFold(f.column.Name, k.Column)
		other, own := k.Table, k.Column
		if refers {
			other, own = k.RefTable, k.RefColumn
		}
		table := q.schema.Table(other)
		if !isKey && !refers || table == nil {
			continue
		}
		if isKey {
			for _, word := range []string{"IN", "NOT IN"} {
				propose("nesting", func(e *editing) bool {
					return e.within(i, word, rowsOf(other, &sql.Node{Kind: sql.Column, Value: own}))
				})
			}
		}
		for _, c := range table.Columns {
			if c.PrimaryKey || sql.TypeAffinity(c.Type).IsNumber() {
				continue
			}
			for _, v := range q.values(other, c.Name) {
				propose("nesting", func(e *editing) bool {
					inner := rowsOf(other, &sql.Node{Kind: sql.Column, Value: own})
					narrow(inner, branch(sql.Compare, "=", &sql.Node{Kind: sql.Column, Value: c.Name}, v.Clone()))
					return e.within(i, "IN", inner)
				})
			}
		}
	}
}

// within keeps the rows whose field i is among, or not among, those of a block.
func (e *editing) within(i int, word string, inner *sql.Node) bool {
	narrow(e.block, branch(sql.In, word, e.fields()[i].Node, branch(sql.Subquery, "", inner)))
	return true
}
