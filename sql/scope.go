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

	// merged gives, for each column that its join makes one with those of that
	// name before it (USING, NATURAL), the kind of the join. Keys are in lower case.
	merged map[string]string
	// namesake says that another source of the block has the same name.
	namesake bool
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
	// Level counts the blocks from the name out to the one whose FROM holds the
	// source, or which projects the expression. A sub-query in FROM sees past its
	// own block.
	Level int
	// Ambiguous says that other sources of the same block match as well.
	Ambiguous bool
	// Coalesced says that a FULL JOIN merges the column with others, so that the
	// name stands for the first of them that is not NULL.
	Coalesced bool
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

// Binding returns what n, a Column or qualified Star, means. The constants TRUE and
// FALSE have one too where a column or output of that name hides them.
func (s *Scopes) Binding(n *Node) Binding { return s.bindings[n] }

// Scope returns the scope of a block or aliased JoinGroup, nil for other nodes.
func (s *Scopes) Scope(block *Node) *Scope { return s.scopes[block] }

// Source returns the source that a Table, TableFunction, Derived or aliased
// JoinGroup node is, nil for other nodes.
func (s *Scopes) Source(n *Node) *Source { return s.sources[n] }

// add numbers the source among those of the same instance name.
func (s *Scope) add(source *Source) {
	same := 1
	for _, other := range s.Sources {
		if source.Name != "" && strings.EqualFold(other.Name, source.Name) {
			other.namesake, source.namesake = true, true
		}
		if base, _, _ := strings.Cut(other.Instance, "#"); base == source.Instance {
			same++
		}
	}
	if same > 1 {
		source.Instance += "#" + strconv.Itoa(same)
	}
	s.Sources = append(s.Sources, source)
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

// isHidden reports that a star leaves out known column i.
func (s *Source) isHidden(i int) bool { return s.Table != nil && s.Table.Columns[i].Hidden }

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
	_, found := s.merged[strings.ToLower(name)]
	return found
}

// merge notes what the columns of the sources on the right of a join are made one
// with on its left.
func merge(join *Node, left, right []*Source) {
	mark := func(name string) {
		for _, s := range right {
			if s.Find(name) >= 0 {
				if s.merged == nil {
					s.merged = make(map[string]string)
				}
				s.merged[strings.ToLower(name)] = join.Value
			}
		}
	}
	if using := join.Child(Using); using != nil {
		for _, column := range using.Children {
			mark(column.Value)
		}
	}
	if strings.HasPrefix(join.Value, "NATURAL") {
		for _, s := range left {
			for i := range s.Len() {
				mark(s.ColumnName(i))
			}
		}
	}
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
