package curriculum

import (
	"slices"
	"strings"

	"caper/sql"
)

// query is a statement whose changes are proposed, and what is known of its database.
type query struct {
	tree   *sql.Node
	schema *sql.Schema
	// values are some of those that a column holds, as literals.
	values func(table, column string) []*sql.Node
}

// proposal is a changed statement.
type proposal struct {
	change string
	text   string
}

// editing is one change of a copy of the statement, in place.
type editing struct {
	tree, block *sql.Node // block: the first SELECT
	scopes      *sql.Scopes
	schema      *sql.Schema
}

// edited copies the statement, lets edit change the copy and returns its text; "" where
// edit says that it cannot.
func (q *query) edited(edit func(e *editing) bool) string {
	tree := q.tree.Clone()
	e := &editing{tree: tree, block: first(tree), scopes: sql.Resolve(tree, q.schema), schema: q.schema}
	if !edit(e) {
		return ""
	}
	return sql.Render(tree)
}

// first is the outermost SELECT, the left one of a set operation.
func first(tree *sql.Node) *sql.Node {
	if tree.Kind == sql.Compound {
		for _, c := range tree.Children {
			if c.IsBlock() {
				return first(c)
			}
		}
	}
	return tree
}

// source is a base table that a block reads.
type source struct {
	name  string // that qualifies its columns
	table *sql.SchemaTable
	node  *sql.Node
}

// sources are the base tables of the outermost SELECT, nil where it reads anything else.
func (e *editing) sources() (all []source) {
	scope := e.scopes.Scope(e.block)
	if scope == nil {
		return nil
	}
	for _, s := range scope.Sources {
		if s.Table == nil {
			return nil
		}
		all = append(all, source{s.Name, s.Table, s.Node})
	}
	return all
}

// field is a column of a source, as the block writes it.
type field struct {
	*sql.Node
	source source
	column *sql.SchemaColumn
	key    bool // part of a primary or foreign key
}

func (f field) isNumber() bool { return sql.TypeAffinity(f.column.Type).IsNumber() }

// fields are the columns of the outermost SELECT's tables.
func (e *editing) fields() (all []field) {
	sources := e.sources()
	for _, s := range sources {
		for i := range s.table.Columns {
			c := &s.table.Columns[i]
			n := &sql.Node{Kind: sql.Column, Value: c.Name}
			if len(sources) > 1 {
				n.Qualifier = s.name
			}
			all = append(all, field{n, s, c, c.PrimaryKey || e.isForeign(s.table.Name, c.Name)})
		}
	}
	return all
}

func (e *editing) isForeign(table, column string) bool {
	return slices.ContainsFunc(e.schema.ForeignKeys, func(k sql.ForeignKey) bool {
		return strings.EqualFold(k.Table, table) && strings.EqualFold(k.Column, column)
	})
}

// uses reports that a column below n belongs to a source.
func (e *editing) uses(n *sql.Node, source *sql.Node) bool {
	found := false
	sql.Walk(n, func(c *sql.Node) bool {
		b := e.scopes.Binding(c).Source
		found = found || c.Kind == sql.Column && b != nil && b.Node == source
		return !found
	})
	return found
}

// aggregates reports an aggregate in the projection.
func (e *editing) aggregates() bool {
	return slices.ContainsFunc(e.block.Child(sql.Projection).Children, hasAggregate)
}

func hasAggregate(n *sql.Node) bool {
	found := false
	sql.Walk(n, func(c *sql.Node) bool {
		found = found || c.Kind == sql.Aggregate
		return !found && c.Kind != sql.Subquery
	})
	return found
}

// nests reports a block inside the statement.
func (e *editing) nests() bool {
	blocks := 0
	sql.Walk(e.tree, func(n *sql.Node) bool {
		if n.IsBlock() {
			blocks++
		}
		return true
	})
	return blocks > 1
}

// order of the clauses of a SELECT.
var order = []sql.Kind{sql.With, sql.Projection, sql.From, sql.Where, sql.GroupBy, sql.Having, sql.Window, sql.OrderBy, sql.Limit}

// put puts a clause into the block, where it belongs.
func put(block, clause *sql.Node) {
	place := slices.Index(order, clause.Kind)
	i := slices.IndexFunc(block.Children, func(c *sql.Node) bool { return slices.Index(order, c.Kind) > place })
	if i < 0 {
		i = len(block.Children)
	}
	block.Children = slices.Insert(block.Children, i, clause)
	clause.Parent = block
}

// drop takes a node from its parent; nil is not there.
func drop(n *sql.Node) bool {
	if n == nil {
		return false
	}
	n.Parent.Children = slices.Delete(n.Parent.Children, n.Index(), n.Index()+1)
	return true
}

// narrow adds a condition to the block's WHERE.
func narrow(block, condition *sql.Node) {
	where := block.Child(sql.Where)
	if where == nil {
		put(block, branch(sql.Where, "", condition))
		return
	}
	old := where.Children[0]
	if old.Kind != sql.And {
		old = branch(sql.And, "", old)
		where.Children[0], old.Parent = old, where
	}
	old.Children = append(old.Children, condition)
	condition.Parent = old
}

// widen takes a condition away: its clause, where it is the only one.
func widen(condition *sql.Node) {
	parent := condition.Parent
	drop(condition)
	if parent.IsClause() {
		drop(parent)
	} else if len(parent.Children) == 1 {
		rest, i := parent.Children[0], parent.Index()
		parent.Parent.Children[i], rest.Parent = rest, parent.Parent
	}
}

// conditions are the operands of a clause's AND or OR, or its only condition.
func conditions(clause *sql.Node) []*sql.Node {
	if clause == nil {
		return nil
	}
	if c := clause.Children[0]; c.Kind == sql.And || c.Kind == sql.Or {
		return c.Children
	}
	return clause.Children
}

func branch(kind sql.Kind, value string, children ...*sql.Node) *sql.Node {
	n := &sql.Node{Kind: kind, Value: value, Children: children}
	for _, c := range children {
		c.Parent = n
	}
	return n
}

func number(text string) *sql.Node { return &sql.Node{Kind: sql.Number, Value: text} }

func countRows() *sql.Node { return branch(sql.Aggregate, "count", &sql.Node{Kind: sql.Star}) }
