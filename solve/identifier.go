package solve

import (
	"fmt"
	"slices"
	"strings"

	"caper/sql"
)

// nameSimilarity is how alike a name and the schema's must be to be taken for it.
const nameSimilarity = 0.85

// mend is a query that an operator proposes in the place of one that does not work.
type mend struct{ sql, by, note string }

// cutTail keeps the first statement of a text that goes on behind it with other
// statements or with chat.
func cutTail(x *Examined) []mend {
	text := x.SQL
	for range 3 {
		_, err := sql.Parse(text)
		failure, ok := err.(*sql.ParseError)
		if !ok || failure.Offset <= 0 || failure.Offset >= len(text) {
			return nil
		}
		text = strings.TrimRight(text[:failure.Offset], " \t\r\n;")
		if _, err := sql.Parse(text); err == nil {
			return []mend{{text, "cut-tail", "text behind the first statement left out"}}
		}
	}
	return nil
}

// mendNames replaces every name that the schema does not have by the closest one it
// has: a column of the table that its qualifier names, else of the tables in view, else
// of a table that a foreign key connects to one of them, which is joined then. All have
// to be found, and clearly.
func mendNames(x *Examined, schema *sql.Schema, findings []Finding) []mend {
	d := &naming{draft: newDraft(x), schema: schema, joined: map[joinedTable]string{}}
	var notes []string
	for _, f := range findings {
		var note string
		switch f.Code {
		case UnknownTable:
			note = d.table(f.node)
		case UnknownColumn:
			note = d.column(f.node)
		case AmbiguousColumn:
			note = d.ambiguous(f.node)
		default:
			continue
		}
		if note == "" {
			return nil
		}
		notes = append(notes, note)
	}
	if len(notes) == 0 {
		return nil
	}
	return []mend{{d.text(), "identifier", strings.Join(slices.Compact(notes), ", ")}}
}

// naming is a draft in which names are put right.
type naming struct {
	*draft
	schema *sql.Schema
	joined map[joinedTable]string // tables that had to be joined, and their names there
}

type joinedTable struct {
	block *sql.Node
	table string
}

func (d *naming) table(n *sql.Node) string {
	names := make([]string, len(d.schema.Tables))
	for i, t := range d.schema.Tables {
		names[i] = t.Name
	}
	i := closest(names, n.Value)
	if i < 0 {
		return ""
	}
	copied := d.at(n)
	if copied.Child(sql.Alias) == nil { // its columns are qualified with its name
		alias := node(sql.Alias, n.Value)
		alias.Parent = copied
		copied.Children = append(copied.Children, alias)
	}
	copied.Value = names[i]
	return n.Value + " is " + names[i]
}

// closest finds the one name that is alike enough, whatever its case, spaces and
// underscores.
func closest(names []string, name string) int {
	plain := plainName(name)
	return bestOf(names, nameSimilarity, func(s string) float64 { return similarity(plainName(s), plain) })
}

// column finds what an unknown column stands for.
func (d *naming) column(n *sql.Node) string {
	scope := d.scopes.Scope(n.Block())
	if scope == nil {
		return ""
	}
	for s := scope; s != nil; s = s.Outer {
		for _, own := range []bool{true, false} { // the table that the qualifier names goes first
			source, i := d.known(s, n, own)
			if source == nil {
				continue
			}
			return d.rename(n, source.Name, source.ColumnName(i))
		}
	}
	return d.neighbour(n, scope)
}

// known is the column, of the sources of a block, that a name is alike to.
func (d *naming) known(s *sql.Scope, n *sql.Node, own bool) (*sql.Source, int) {
	var names []string
	var sources []*sql.Source
	var columns []int
	for _, source := range s.Sources {
		if own && (n.Qualifier == "" || !strings.EqualFold(source.Name, n.Qualifier)) {
			continue
		}
		for i := range source.Len() {
			names, sources, columns = append(names, source.ColumnName(i)), append(sources, source), append(columns, i)
		}
	}
	i := closest(names, n.Value)
	if i < 0 || !own && !isOnly(names, names[i]) {
		return nil, -1
	}
	return sources[i], columns[i]
}

// isOnly reports that a name stands in a list once.
func isOnly(names []string, name string) bool {
	n := 0
	for _, other := range names {
		if strings.EqualFold(other, name) {
			n++
		}
	}
	return n == 1
}

// rename gives a column its name, unless it would be compared with its own table then:
// that is no condition.
func (d *naming) rename(n *sql.Node, qualifier, name string) string {
	copied := d.at(n)
	if n.Parent.Kind == sql.Compare {
		other := copied.Parent.Children[1-n.Index()]
		if other.Kind == sql.Column && strings.EqualFold(other.Qualifier, qualifier) {
			return ""
		}
	}
	copied.Qualifier, copied.Value, copied.DoubleQuoted = qualifier, name, false
	return columnName(n) + " is " + columnName(copied)
}

// neighbour joins the one table that has the column and that a foreign key connects to
// a table of the block.
func (d *naming) neighbour(n *sql.Node, scope *sql.Scope) string {
	block := scope.Block
	if block.Kind != sql.Select || block.Child(sql.From) == nil || n.Clause().Kind == sql.From {
		return "" // a join ahead of the new one cannot name its table
	}
	type place struct {
		table, column string
		on            *sql.Node
	}
	var found []place
	for _, t := range d.schema.Tables {
		c := t.Column(n.Value)
		if c == nil {
			continue
		}
		for _, source := range scope.Sources {
			if source.Table == nil || strings.EqualFold(source.Table.Name, t.Name) {
				continue
			}
			if l, r, ok := foreignKey(d.schema, source.Table.Name, t.Name); ok {
				found = append(found, place{t.Name, c.Name, node(sql.Compare, "=", column(source.Name, l), column(t.Name, r))})
				break
			}
		}
	}
	if len(found) != 1 {
		return ""
	}
	p := found[0]
	name, done := d.joined[joinedTable{block, p.table}]
	if !done {
		name = p.table
		for _, source := range scope.Sources {
			if strings.EqualFold(source.Name, name) {
				return "" // it would need another name
			}
		}
		from := d.at(block).Child(sql.From)
		join := node(sql.Join, "JOIN", node(sql.Table, p.table), node(sql.On, "", p.on))
		join.Parent = from
		from.Children = append(from.Children, join)
		d.joined[joinedTable{block, p.table}] = name
	}
	note := d.rename(n, name, p.column)
	if note == "" {
		return ""
	}
	return note + fmt.Sprintf(", joined with %s", p.table)
}

// ambiguous takes the first of the columns that a name may be, where inner joins make
// all of them equal.
func (d *naming) ambiguous(n *sql.Node) string {
	scope := d.scopes.Scope(n.Block())
	if scope == nil || n.Qualifier != "" {
		return ""
	}
	var sources []*sql.Source
	for _, source := range scope.Sources {
		if source.Find(n.Value) >= 0 {
			sources = append(sources, source)
		}
	}
	if len(sources) < 2 {
		return ""
	}
	for _, other := range sources[1:] {
		if !d.equated(scope, n.Value, sources[0], other) {
			return ""
		}
	}
	return d.rename(n, sources[0].Name, sources[0].ColumnName(sources[0].Find(n.Value)))
}

// equated reports that an ON condition of an inner join makes a column of two sources
// equal.
func (d *naming) equated(scope *sql.Scope, name string, a, b *sql.Source) bool {
	found := false
	sql.Walk(scope.Block.Child(sql.From), func(n *sql.Node) bool {
		if n.Kind == sql.Join && isOuter(n) {
			return false // one side may be NULL
		}
		if n.Kind == sql.Compare && n.Value == "=" && (n.Parent.Kind == sql.On || n.Parent.Kind == sql.And) {
			x, y := d.scopes.Binding(n.Children[0]), d.scopes.Binding(n.Children[1])
			sides := x.Source == a && y.Source == b || x.Source == b && y.Source == a
			if sides && strings.EqualFold(n.Children[0].Value, name) && strings.EqualFold(n.Children[1].Value, name) {
				found = true
			}
		}
		return !n.IsBlock()
	})
	return found
}
