package sql

import (
	"strconv"
	"strings"
)

// Resolve finds the meaning of every name under the block n by SQLite's rules:
// innermost block first, columns before aliases except for a bare ORDER BY
// term, text in double quotes a string when nothing has that name, case
// ignored. It does not fail: what it cannot find means nothing. The schema may
// be nil; then tables have any column that is asked of them.
func Resolve(n *Node, schema *Schema) *Scopes {
	r := resolver{schema: schema, Scopes: &Scopes{
		bindings: make(map[*Node]Binding),
		scopes:   make(map[*Node]*Scope),
		sources:  make(map[*Node]*Source),
	}}
	if n != nil {
		r.exprs(n, nil, nil)
	}
	return r.Scopes
}

type resolver struct {
	*Scopes
	schema *Schema
	tables int // common tables seen so far
}

// ctes is the list of common tables in view, innermost first.
type ctes struct {
	node     *Node
	instance string
	around   *ctes // everything its own body can see
	outer    *Scope
	next     *ctes
	state    int // untouched, inside, done
	columns  []Output
	open     bool
}

const (
	untouched = iota
	inside
	done
)

// block resolves the names in one block.
func (r *resolver) block(b *Node, outer *Scope, common *ctes) {
	if with := b.Child(With); with != nil {
		common = r.with(with, outer, common)
	}
	scope := &Scope{Block: b, Outer: outer}
	r.scopes[b] = scope
	for _, clause := range b.Children {
		scope.clause = clause.Kind
		switch clause.Kind {
		case With:
		case From:
			r.from(clause, scope, common)
		case SetOp, Select, Values: // operands see what the compound sees
			r.exprs(clause, outer, common)
		}
	}
	for _, clause := range b.Children {
		scope.clause = clause.Kind
		switch clause.Kind {
		case With, From, SetOp, Select, Values:
		default:
			r.exprs(clause, scope, common)
		}
	}
	scope.resolved = true
}

// exprs resolves the names under n in the given scope; blocks below open their
// own.
func (r *resolver) exprs(n *Node, scope *Scope, common *ctes) {
	switch {
	case n.IsBlock():
		r.block(n, scope, common)
		return
	case n.Kind == Column || n.Kind == Star && n.Qualifier != "" || n.isTruth():
		r.bindings[n] = r.bind(n, scope)
		return
	case n.Kind == Table: // IN table
		r.sources[n] = r.table(n, common)
		return
	case n.Kind == TableFunction && n.Parent.Kind == In:
		r.sources[n] = tableFunction(n)
	}
	for _, c := range n.Children {
		r.exprs(c, scope, common)
	}
}

// isTruth reports that n is TRUE or FALSE, which a column or alias may be called.
func (n *Node) isTruth() bool {
	return n.Kind == Constant && (n.Value == "TRUE" || n.Value == "FALSE")
}

// with puts the common tables of a WITH clause before those in view. Each sees
// all of them, itself included.
func (r *resolver) with(with *Node, outer *Scope, common *ctes) *ctes {
	for _, c := range with.Children {
		r.tables++
		common = &ctes{node: c, instance: "cte" + strconv.Itoa(r.tables), outer: outer, next: common}
	}
	for c, i := common, 0; i < len(with.Children); c, i = c.next, i+1 {
		c.around = common
	}
	for c, i := common, 0; i < len(with.Children); c, i = c.next, i+1 {
		r.define(c)
	}
	return common
}

// define resolves the body of a common table once.
func (r *resolver) define(c *ctes) {
	if c.state != untouched {
		return
	}
	c.state = inside
	body := c.node.Children[len(c.node.Children)-1]
	r.block(body, c.outer, c.around)
	c.columns, c.open = r.cteColumns(c)
	c.state = done
}

// cteColumns lists the columns of a common table under the names it declares.
// From inside its own recursive body, only those of the first operand are known.
func (r *resolver) cteColumns(c *ctes) (columns []Output, open bool) {
	names, body := c.node.Children[:len(c.node.Children)-1], c.node.Children[len(c.node.Children)-1]
	columns, open = r.columns(body)
	if len(names) == 0 {
		return columns, open
	}
	declared := make([]Output, len(names))
	for i, name := range names {
		if i < len(columns) {
			declared[i] = columns[i]
		}
		declared[i].Name = name.Value
	}
	return declared, false
}

// from enters the sources of a FROM clause into the scope, then resolves the
// join conditions, which may name any of them.
func (r *resolver) from(from *Node, scope *Scope, common *ctes) {
	r.enter(from, scope, common)
	r.conditions(from, scope, common)
}

// enter adds the sources of a From or JoinGroup to the scope.
func (r *resolver) enter(n *Node, scope *Scope, common *ctes) {
	first := len(scope.Sources)
	for _, c := range n.Children {
		if c.Kind != Join {
			r.source(c, scope, common)
			continue
		}
		before := len(scope.Sources)
		r.source(c.Children[0], scope, common)
		merge(c, scope.Sources[first:before], scope.Sources[before:])
	}
}

// source adds what one operand of a join brings to the scope.
func (r *resolver) source(n *Node, scope *Scope, common *ctes) {
	var s *Source
	switch n.Kind {
	case JoinGroup:
		if n.Child(Alias) == nil {
			r.enter(n, scope, common)
			return
		}
		s = r.group(n, scope, common)
	case Table:
		s = r.table(n, common)
	case TableFunction:
		s = tableFunction(n)
	case Derived:
		body := n.Children[0]
		r.block(body, scope.Outer, common)
		s = &Source{Node: n, Instance: "derived", Block: body}
		s.Columns, s.Open = r.columns(body)
	default:
		return // the alias of a group
	}
	s.Name = n.Value
	if alias := n.Child(Alias); alias != nil {
		s.Name = alias.Value
	}
	r.sources[n] = s
	scope.add(s)
}

// table makes the source for a table name: a common table in view, else a base
// table.
func (r *resolver) table(n *Node, common *ctes) *Source {
	if n.Qualifier == "" {
		for c := common; c != nil; c = c.next {
			if !strings.EqualFold(c.node.Value, n.Value) {
				continue
			}
			r.define(c)
			s := &Source{Node: n, Instance: c.instance, Block: c.node.Children[len(c.node.Children)-1], Columns: c.columns, Open: c.open}
			if c.state == inside {
				s.Columns, s.Open = r.cteColumns(c)
			}
			return s
		}
	}
	s := &Source{Node: n, Instance: strings.ToLower(n.Value), Table: r.schema.Table(n.Value)}
	if s.Table == nil {
		s.Table = tableFunctions.Table(n.Value)
	}
	s.Open = s.Table == nil
	return s
}

// tableFunction makes the source for a table-valued function.
func tableFunction(n *Node) *Source {
	s := &Source{Node: n, Instance: strings.ToLower(n.Value), Table: tableFunctions.Table(n.Value)}
	s.Open = s.Table == nil
	return s
}

// group makes one source of a parenthesised join with an alias.
func (r *resolver) group(n *Node, scope *Scope, common *ctes) *Source {
	inner := &Scope{Block: n, Outer: scope.Outer, clause: From}
	r.scopes[n] = inner
	r.from(n, inner, common)
	s := &Source{Node: n, Instance: "derived"}
	s.Columns, s.Open = expandStar(inner.Sources, true)
	return s
}

// conditions resolves ON conditions, which may name outputs as WHERE may, and the
// arguments of table-valued functions.
func (r *resolver) conditions(n *Node, scope *Scope, common *ctes) {
	for _, c := range n.Children {
		switch c.Kind {
		case Join:
			r.conditions(c, scope, common)
		case JoinGroup:
			if c.Child(Alias) == nil {
				r.conditions(c, scope, common)
			}
		case On:
			scope.clause = On
			r.exprs(c, scope, common)
			scope.clause = From
		case TableFunction:
			r.exprs(c, scope, common)
		}
	}
}

// columns lists what a block produces. From inside the block itself, which only
// a common table can refer to, nothing is known but the first operand of a
// compound.
func (r *resolver) columns(b *Node) (columns []Output, open bool) {
	if scope := r.scopes[b]; scope != nil && scope.resolved {
		if !scope.listed {
			scope.outputs, scope.open = r.outputs(b)
			scope.listed = true
		}
		return scope.outputs, scope.open
	}
	if b.Kind == Compound {
		return r.columns(b.operands()[0])
	}
	return nil, true
}

// outputs lists the columns of a block whose names are resolved. It reports
// open when a star stands for columns that are not known.
func (r *resolver) outputs(b *Node) (columns []Output, open bool) {
	switch b.Kind {
	case Compound:
		return r.columns(b.operands()[0])
	case Values:
		for i, expr := range b.Children[0].Children {
			columns = append(columns, Output{Name: "column" + strconv.Itoa(i+1), Expr: expr})
		}
		return columns, false
	}
	scope := r.scopes[b]
	for _, item := range b.Child(Projection).Children {
		expr := item.Children[0]
		if expr.Kind == Star {
			expanded, unknown := scope.expand(expr)
			columns, open = append(columns, expanded...), open || unknown
		} else {
			columns = append(columns, Output{Name: outputName(item), Expr: expr})
		}
		if len(columns) > maxOutputs {
			return nil, true
		}
	}
	return columns, open
}

// operands are a compound's blocks, first to last.
func (n *Node) operands() []*Node {
	var blocks []*Node
	for _, c := range n.Children {
		switch c.Kind {
		case Select, Values:
			blocks = append(blocks, c)
		case SetOp:
			blocks = append(blocks, c.Children[0])
		}
	}
	return blocks
}

// outputName is the name SQLite gives the column of an item: its alias, a
// column's own name, or the expression's text.
func outputName(item *Node) string {
	if alias := item.Child(Alias); alias != nil {
		return alias.Value
	}
	if expr := item.Children[0]; expr.Kind == Column {
		return expr.Value
	}
	return Render(item.Children[0])
}

// expand lists the columns that a star stands for. Those that a NATURAL or USING
// join merges appear once, except under a qualifier.
func (s *Scope) expand(star *Node) (columns []Output, open bool) {
	return expandStar(s.starred(star), star.Qualifier == "")
}

func expandStar(sources []*Source, once bool) (columns []Output, open bool) {
	for _, s := range sources {
		open = open || s.Open
		for i := range s.Len() {
			if name := s.ColumnName(i); !s.isHidden(i) && !(once && s.merges(name)) {
				columns = append(columns, Output{Name: name, Source: s, Column: i})
			}
		}
	}
	return columns, open
}
