package solve

import (
	"fmt"
	"strings"

	"caper/sql"
)

// Code names a filter of candidates before execution (sirius.md 2.4). The first six
// reject what no engine would run, the others only flag what is worth a look.
type Code string

const (
	NoSQL           Code = "F1" // no text
	NoParse         Code = "F2" // SQLite's grammar rejects it
	NotOneSelect    Code = "F3" // not one SELECT, VALUES or WITH statement
	UnknownTable    Code = "F4"
	UnknownColumn   Code = "F5"
	AmbiguousColumn Code = "F6"
	MisusedGroup    Code = "F7" // an aggregate in WHERE, or HAVING without one and without GROUP BY
	NoJoinCondition Code = "F8" // tables that a foreign key connects, joined without any condition
	Duplicate       Code = "F9" // the same query as an earlier candidate's in other words
)

// rejects reports that a query with the finding cannot run.
func (c Code) rejects() bool { return c <= AmbiguousColumn }

// Finding is what a filter found.
type Finding struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`

	node *sql.Node // where
}

// Screen finds what is wrong with a candidate's text, in the order of the codes.
func (x *Examined) Screen(schema *sql.Schema) []Finding {
	if strings.TrimSpace(x.SQL) == "" {
		return []Finding{{Code: NoSQL, Message: "there is no SQL"}}
	}
	if x.tree == nil {
		return []Finding{unparsed(x.SQL)}
	}
	s := screening{Examined: x, schema: schema}
	sql.Walk(x.tree, func(n *sql.Node) bool {
		s.name(n)
		s.group(n)
		s.join(n)
		return true
	})
	return s.findings()
}

// unparsed tells a text that is no SQL from one that is another statement.
func unparsed(text string) Finding {
	_, err := sql.Parse(text)
	message := err.Error()
	for _, other := range []string{"no statement", "more than one statement", "not a SELECT"} {
		if strings.Contains(message, other) {
			return Finding{Code: NotOneSelect, Message: message}
		}
	}
	return Finding{Code: NoParse, Message: message}
}

type screening struct {
	*Examined
	schema *sql.Schema
	found  [10][]Finding // by the code's digit
}

func (s *screening) add(c Code, n *sql.Node, format string, args ...any) {
	at := c[1] - '0'
	s.found[at] = append(s.found[at], Finding{c, fmt.Sprintf(format, args...), n})
}

func (s *screening) findings() (all []Finding) {
	for _, f := range s.found {
		all = append(all, f...)
	}
	return all
}

// name checks what a table or column means. A schema that is not known knows nothing
// wrong.
func (s *screening) name(n *sql.Node) {
	if s.schema == nil {
		return
	}
	switch n.Kind {
	case sql.Table:
		source := s.scopes.Source(n)
		if source != nil && source.Block == nil && source.Table == nil && !isInternal(n) {
			s.add(UnknownTable, n, "no such table: %s", n.Value)
		}
	case sql.Column:
		b := s.scopes.Binding(n)
		switch {
		case b.Ambiguous:
			s.add(AmbiguousColumn, n, "ambiguous column name: %s", columnName(n))
		case isUnknown(n, b) && !s.mayBeOpen(n):
			s.add(UnknownColumn, n, "no such column: %s", columnName(n))
		}
	}
}

// isInternal reports that a table is SQLite's own, which schemas leave out.
func isInternal(n *sql.Node) bool {
	return n.Qualifier != "" || strings.HasPrefix(strings.ToLower(n.Value), "sqlite_") || strings.HasPrefix(strings.ToLower(n.Value), "pragma_")
}

// isUnknown reports that a column names nothing.
func isUnknown(n *sql.Node, b sql.Binding) bool {
	switch b.Meaning {
	case sql.MeansNothing:
		return true
	case sql.MeansColumn:
		return b.Column < 0 && !b.Source.Open && !isRowID(n.Value)
	}
	return false
}

func isRowID(name string) bool {
	name = strings.ToLower(name)
	return name == "rowid" || name == "oid" || name == "_rowid_"
}

// mayBeOpen reports that some table in view is not known, and so may have the column.
func (s *screening) mayBeOpen(n *sql.Node) bool {
	for scope := s.scopes.Scope(n.Block()); scope != nil; scope = scope.Outer {
		for _, source := range scope.Sources {
			if source.Open {
				return true
			}
		}
	}
	return false
}

func columnName(n *sql.Node) string {
	if n.Qualifier != "" {
		return n.Qualifier + "." + n.Value
	}
	return n.Value
}

// group flags aggregates where rows are not grouped yet.
func (s *screening) group(n *sql.Node) {
	switch n.Kind {
	case sql.Where:
		if a := aggregateIn(n); a != nil {
			s.add(MisusedGroup, a, "aggregate %s in WHERE", sql.Render(a))
		}
	case sql.Having:
		if n.Parent.Child(sql.GroupBy) == nil && aggregateIn(n) == nil && aggregateIn(n.Parent.Child(sql.Projection)) == nil {
			s.add(MisusedGroup, n, "HAVING without GROUP BY and without an aggregate")
		}
	}
}

// aggregateIn finds an aggregate under n that belongs to n's own block.
func aggregateIn(n *sql.Node) (found *sql.Node) {
	sql.Walk(n, func(c *sql.Node) bool {
		if c.Kind == sql.Aggregate && c.Child(sql.Over) == nil && found == nil {
			found = c
		}
		return !c.IsBlock()
	})
	return found
}

// join flags a source that nothing connects to those before it, although a foreign
// key could.
func (s *screening) join(n *sql.Node) {
	if n.Kind != sql.Join || n.Child(sql.On) != nil || n.Child(sql.Using) != nil || strings.HasPrefix(n.Value, "NATURAL") {
		return
	}
	if pair, ok := s.missingKey(n); ok {
		s.add(NoJoinCondition, n, "%s is joined without a condition; a foreign key gives %s", n.Children[0].Value, pair)
	}
}

// missingKey is the foreign key that could join a source whose table is known, where no
// condition of its block connects it to another.
func (s *screening) missingKey(join *sql.Node) (pair joinPair, ok bool) {
	right := s.scopes.Source(join.Children[0])
	scope := s.scopes.Scope(join.Block())
	if right == nil || right.Table == nil || scope == nil || connects(s.Examined, join.Block(), right) {
		return pair, false
	}
	for _, left := range scope.Sources {
		if left == right || left.Table == nil {
			continue
		}
		if l, r, found := foreignKey(s.schema, left.Table.Name, right.Table.Name); found {
			return joinPair{left.Name, l, right.Name, r}, true
		}
	}
	return pair, false
}

// connects reports that some condition of a block names both the source and another.
func connects(x *Examined, block *sql.Node, source *sql.Source) bool {
	connected := false
	sql.Walk(block, func(n *sql.Node) bool {
		if n.Kind == sql.Compare || n.Kind == sql.In || n.Kind == sql.Between || n.Kind == sql.Like || n.Kind == sql.Is {
			own, other := false, false
			sql.Walk(n, func(c *sql.Node) bool {
				if b := x.scopes.Binding(c); b.Meaning == sql.MeansColumn {
					own, other = own || b.Source == source, other || b.Source != source
				}
				return true
			})
			connected = connected || own && other
		}
		return true
	})
	return connected
}

// foreignKey is a pair of columns by which a foreign key connects two tables, in
// either direction.
func foreignKey(schema *sql.Schema, left, right string) (leftColumn, rightColumn string, ok bool) {
	for _, k := range schema.ForeignKeys {
		if strings.EqualFold(k.Table, left) && strings.EqualFold(k.RefTable, right) {
			return k.Column, k.RefColumn, true
		}
		if strings.EqualFold(k.Table, right) && strings.EqualFold(k.RefTable, left) {
			return k.RefColumn, k.Column, true
		}
	}
	return "", "", false
}
