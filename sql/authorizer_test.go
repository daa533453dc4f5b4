package sql

import (
	"database/sql"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
)

// columnsRead lists, sorted and in lower case, the columns of base tables that
// SQLite resolves names in the query to: at prepare it asks an authorizer about
// each. ok is false when SQLite refuses the query.
func columnsRead(t testing.TB, db *sql.DB, text string) (columns []string, ok bool) {
	t.Helper()
	rawConn(t, db, func(c *sqlite3.SQLiteConn) {
		c.RegisterAuthorizer(func(action int, table, column, _ string) int {
			if action == sqlite3.SQLITE_READ && column != "" {
				columns = append(columns, strings.ToLower(table+"."+column))
			}
			return sqlite3.SQLITE_OK
		})
		defer c.RegisterAuthorizer(nil)
		statement, err := c.Prepare(text)
		if err == nil {
			statement.Close()
			ok = true
		}
	})
	slices.Sort(columns)
	return slices.Compact(columns), ok
}

// columnsBound lists in the same way what Resolve binds names to.
func columnsBound(n *Node, schema *Schema) []string {
	b := boundColumns{Scopes: Resolve(n, schema), done: map[*Node]bool{}}
	b.visit(n)
	slices.Sort(b.columns)
	return slices.Compact(b.columns)
}

// boundColumns walks what SQLite resolves: common tables and windows only where
// they are used.
type boundColumns struct {
	*Scopes
	done    map[*Node]bool // bodies of common tables
	columns []string
}

func (b *boundColumns) visit(n *Node) {
	switch n.Kind {
	case With:
		return
	case Column, Constant:
		if to := b.Binding(n); to.Meaning == MeansColumn {
			b.add(to.Source, to.Column)
		}
	case Item:
		if star := n.Children[0]; star.Kind == Star {
			expanded, _ := b.Scope(n.Block()).expand(star)
			b.addAll(expanded)
		}
	case JoinGroup: // SQLite makes a sub-query with a star of it
		Walk(n, func(n *Node) bool {
			if s := b.Source(n); s != nil && s.Node != nil {
				columns, _ := expandStar([]*Source{s}, false)
				b.addAll(columns)
				if s.Table != nil && !s.Table.NoRowID {
					b.add(s, -1)
				}
			}
			return !n.IsBlock()
		})
	case Table, TableFunction:
		s := b.Source(n)
		if s != nil && s.Block != nil && !b.done[s.Block] {
			b.done[s.Block] = true
			b.visit(s.Block)
		}
		if n.Parent.Kind == In {
			columns, _ := expandStar([]*Source{s}, false)
			b.addAll(columns)
		}
	case WindowDef:
		used := false
		Walk(n.Block(), func(other *Node) bool {
			used = used || other.Kind == Over && strings.EqualFold(other.Value, n.Value)
			return true
		})
		if !used {
			return
		}
	}
	for _, c := range n.Children {
		b.visit(c)
	}
}

func (b *boundColumns) addAll(columns []Output) {
	for _, c := range columns {
		b.add(c.Source, c.Column)
	}
}

// add notes column i of a source if that is a base table; -1 is the row id.
func (b *boundColumns) add(s *Source, i int) {
	switch {
	case s == nil || s.Table == nil:
	case i >= 0:
		b.columns = append(b.columns, strings.ToLower(s.Table.Name+"."+s.ColumnName(i)))
	default:
		b.columns = append(b.columns, strings.ToLower(s.Table.Name)+"."+rowIDColumn(s.Table))
	}
}

// rowIDColumn is the column that SQLite reads as a table's row id.
func rowIDColumn(table *SchemaTable) string {
	for _, c := range table.Columns {
		if c.PrimaryKey && strings.EqualFold(c.Type, "INTEGER") {
			return strings.ToLower(c.Name)
		}
	}
	return "rowid"
}

// isOdd reports that SQLite does not resolve a statement's names as written. It
// takes "x IN ()" and "x AND constant" for constants, at times without a look at
// x; and where the ORDER BY of a compound names a collation, it lets the GROUP BY
// of the last operand group the compound.
func isOdd(n *Node) (odd bool) {
	Walk(n, func(n *Node) bool {
		switch {
		case n.Kind == List:
			odd = odd || len(n.Children) == 0
		case n.Kind == OrderBy && n.Parent.Kind == Compound:
			odd = odd || hasCollation(n)
		case n.Parent != nil && (n.Parent.Kind == And || n.Parent.Kind == Or):
			odd = odd || len(columnsUnder(n)) == 0
		}
		return !odd
	})
	return odd
}

// TestResolveAgreesWithSQLite checks on all gold, predictions and random
// statements that Resolve binds names to the columns that SQLite reads.
func TestResolveAgreesWithSQLite(t *testing.T) {
	t.Parallel()
	checked := 0
	check := func(db *sql.DB, schema *Schema, text string) {
		n, err := Parse(text)
		if err != nil || isOdd(n) {
			return
		}
		want, ok := columnsRead(t, db, n.Text(text))
		if !ok {
			return
		}
		checked++
		if got := columnsBound(n, schema); !slices.Equal(got, want) {
			t.Errorf("%s\n\tgot  %v\n\twant %v", text, got, want)
		}
	}
	toys := openToys(t, 1)
	schema := schemaOf(t, toys)
	rng := rand.New(rand.NewPCG(3, 5))
	for range *mutants {
		check(toys, schema, writeStatement(rng, toySources()))
	}
	dbs := openDatabases(t)
	everyQuery(t, func(benchmark, name, text string, _ bool) {
		if db := dbs.get(benchmark, name); db != nil {
			check(db.DB, db.schema, text)
		}
	})
	t.Logf("%d statements", checked)
}
