package sql

import (
	"strconv"
	"strings"
)

// Scopes tells what the names of one statement mean. Resolve makes it.
type Scopes struct {
	bindings map[*Node]Binding
	scopes   map[*Node]*Scope
	sources  map[*Node]*Source
}

// Scope is what the names inside one block can mean: the sources of its FROM
// clause, then those of the block around it.
type Scope struct {
	Block   *Node
	Outer   *Scope // nil for the outermost block
	Sources []*Source

	clause   Kind // the clause being resolved
	resolved bool // the whole block is resolved
	listed   bool // outputs and open are filled in
	outputs  []Output
	open     bool
}

// Source is one source in a FROM clause.
type Source struct {
	Node *Node // Table, TableFunction, Derived, or a JoinGroup with an alias
	// Name is what qualifies its columns: the alias, else the table's name.
	Name string
	// Instance names the source independently of aliases, uniquely within its
	// block: "singer", "singer#2" for the second singer, "derived", "cte1".
	Instance string
	Table    *SchemaTable // the base table, nil for every other source
	Block    *Node        // the block that produces a sub-query's or CTE's rows
	Columns  []Output     // of a source that is no base table
	// Open says that the columns are not known, because the schema does not
	// hold the table or no schema was given. An open source may have any
	// column.
	Open bool
}

// Output is one column that a block produces.
type Output struct {
	Name string
	Expr *Node // the expression behind it; nil when a star expanded to Source's Column
	// Source and Column give the origin of a column that a star stands for.
	Source *Source
	Column int
}

// Binding is the meaning of one Column or qualified Star.
type Binding struct {
	Meaning Meaning
	Source  *Source // for MeansColumn
	// Column is the index in Source.Table.Columns or Source.Columns; -1 for a
	// star, a row id, and a column of a source that is open or lacks it.
	Column int
	Expr   *Node // for MeansOutput: the projected expression
	// Level, for MeansColumn, counts the blocks from the name out to the one
	// whose FROM holds the source. A sub-query in FROM sees past its own block.
	Level int
	// Ambiguous says that other sources of the same block match as well.
	Ambiguous bool
}

// Meaning is what kind of thing a name refers to.
type Meaning int

// The meanings of a name.
const (
	MeansNothing Meaning = iota // unknown
	MeansColumn                 // a column of a source
	MeansOutput                 // an alias of the projection, in another clause
	MeansString                 // "text" in double quotes that names no column
)

// maxOutputs is SQLite's limit on the columns of a result; a block with more
// counts as open.
const maxOutputs = 2000

// Binding returns what n, a Column or qualified Star, means.
func (s *Scopes) Binding(n *Node) Binding { return s.bindings[n] }

// Scope returns the scope of a block, nil for other nodes.
func (s *Scopes) Scope(block *Node) *Scope { return s.scopes[block] }

// Source returns the source that a Table, TableFunction, Derived or aliased
// JoinGroup node is, nil for other nodes.
func (s *Scopes) Source(n *Node) *Source { return s.sources[n] }

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
	case n.Kind == Column || n.Kind == Star && n.Qualifier != "":
		r.bindings[n] = r.bind(n, scope)
		return
	case n.Kind == Table: // IN table
		r.sources[n] = r.table(n, common)
		return
	}
	for _, c := range n.Children {
		r.exprs(c, scope, common)
	}
}

// with puts the common tables of a WITH clause before those in view. Each sees
// all of them, itself included.
func (r *resolver) with(with *Node, outer *Scope, common *ctes) *ctes {
	for i, c := range with.Children {
		common = &ctes{node: c, instance: "cte" + strconv.Itoa(i+1), outer: outer, next: common}
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

// enter adds the sources among n's children to the scope.
func (r *resolver) enter(n *Node, scope *Scope, common *ctes) {
	for _, c := range n.Children {
		var s *Source
		switch c.Kind {
		case Join:
			r.enter(c, scope, common)
			continue
		case JoinGroup:
			if c.Child(Alias) == nil {
				r.enter(c, scope, common)
				continue
			}
			s = r.group(c, scope, common)
		case Table:
			s = r.table(c, common)
		case TableFunction:
			s = &Source{Node: c, Instance: strings.ToLower(c.Value), Open: true}
		case Derived:
			body := c.Children[0]
			r.block(body, scope.Outer, common)
			s = &Source{Node: c, Instance: "derived", Block: body}
			s.Columns, s.Open = r.columns(body)
		default:
			continue
		}
		s.Name = c.Value
		if alias := c.Child(Alias); alias != nil {
			s.Name = alias.Value
		}
		r.sources[c] = s
		scope.add(s)
	}
}

// add numbers the source among those of the same instance name.
func (s *Scope) add(source *Source) {
	same := 1
	for _, other := range s.Sources {
		if base, _, _ := strings.Cut(other.Instance, "#"); base == source.Instance {
			same++
		}
	}
	if same > 1 {
		source.Instance += "#" + strconv.Itoa(same)
	}
	s.Sources = append(s.Sources, source)
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
	s.Open = s.Table == nil
	return s
}

// group makes one source of a parenthesised join with an alias.
func (r *resolver) group(n *Node, scope *Scope, common *ctes) *Source {
	inner := &Scope{Block: scope.Block, Outer: scope.Outer, clause: From}
	r.from(n, inner, common)
	s := &Source{Node: n, Instance: "derived"}
	s.Columns, s.Open = expandStar(inner.Sources)
	return s
}

// conditions resolves ON conditions and the arguments of table-valued
// functions.
func (r *resolver) conditions(n *Node, scope *Scope, common *ctes) {
	for _, c := range n.Children {
		switch c.Kind {
		case Join:
			r.conditions(c, scope, common)
		case JoinGroup:
			if c.Child(Alias) == nil {
				r.conditions(c, scope, common)
			}
		case On, TableFunction:
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
			expanded, unknown := expandStar(scope.starred(expr))
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

// starred are the sources whose columns a star stands for.
func (s *Scope) starred(star *Node) []*Source {
	if star.Qualifier == "" {
		return s.Sources
	}
	if source := s.source(star.Qualifier); source != nil {
		return []*Source{source}
	}
	return nil
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

// expandStar lists all columns of the sources. Columns that a NATURAL or USING
// join merges appear once.
func expandStar(sources []*Source) (columns []Output, open bool) {
	for _, s := range sources {
		open = open || s.Open
		for i := range s.Len() {
			if name := s.ColumnName(i); !s.merges(name) {
				columns = append(columns, Output{Name: name, Source: s, Column: i})
			}
		}
	}
	return columns, open
}

// Len is the number of known columns.
func (s *Source) Len() int {
	if s.Table != nil {
		return len(s.Table.Columns)
	}
	return len(s.Columns)
}

// ColumnName is the name of known column i.
func (s *Source) ColumnName(i int) string {
	if s.Table != nil {
		return s.Table.Columns[i].Name
	}
	return s.Columns[i].Name
}

// Find is the index of the known column with that name, -1 if there is none.
func (s *Source) Find(name string) int {
	for i := range s.Len() {
		if strings.EqualFold(s.ColumnName(i), name) {
			return i
		}
	}
	return -1
}

// merges reports that the source joins by NATURAL or USING on that column, so
// that the name stands for one column of both sides.
func (s *Source) merges(name string) bool {
	join := s.Node.Parent
	if join == nil || join.Kind != Join {
		return false
	}
	if strings.HasPrefix(join.Value, "NATURAL") {
		return true
	}
	if using := join.Child(Using); using != nil {
		for _, column := range using.Children {
			if strings.EqualFold(column.Value, name) {
				return true
			}
		}
	}
	return false
}

// source finds a source by the name that qualifies its columns.
func (s *Scope) source(name string) *Source {
	for _, source := range s.Sources {
		if strings.EqualFold(source.Name, name) {
			return source
		}
	}
	return nil
}
