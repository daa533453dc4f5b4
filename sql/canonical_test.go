package sql

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// concerts is a small schema in which singer and stadium both have a name.
var concerts = &Schema{
	Tables: []SchemaTable{
		{Name: "singer", Columns: []SchemaColumn{
			{Name: "Singer_ID", Type: "INTEGER", PrimaryKey: true}, {Name: "Name", Type: "TEXT"},
			{Name: "Country", Type: "varchar(20)"}, {Name: "Age", Type: "int"}}},
		{Name: "stadium", Columns: []SchemaColumn{
			{Name: "Stadium_ID", Type: "INTEGER", PrimaryKey: true}, {Name: "Name", Type: "TEXT"},
			{Name: "Capacity", Type: "REAL"}}},
		{Name: "concert", Columns: []SchemaColumn{
			{Name: "Concert_ID", Type: "INTEGER", PrimaryKey: true}, {Name: "Year", Type: "date"},
			{Name: "Stadium_ID", Type: "INTEGER"}}},
		{Name: "singer_in_concert", Columns: []SchemaColumn{
			{Name: "Concert_ID", Type: "INTEGER"}, {Name: "Singer_ID", Type: "INTEGER"}}},
	},
	ForeignKeys: []ForeignKey{
		{"concert", "Stadium_ID", "stadium", "Stadium_ID"},
		{"singer_in_concert", "Singer_ID", "singer", "Singer_ID"},
		{"singer_in_concert", "Concert_ID", "concert", "Concert_ID"},
	},
}

func mustParse(t testing.TB, text string) *Node {
	t.Helper()
	n, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func TestCanonicalOfFixture(t *testing.T) {
	for _, line := range fixture(t, "canonical.txt") {
		left, right, same := strings.Cut(line, " |=| ")
		if !same {
			left, right, _ = strings.Cut(line, " |#| ")
		}
		a := Canonical(mustParse(t, left), concerts)
		b := Canonical(mustParse(t, right), concerts)
		if Equal(a, b) != same {
			t.Errorf("%s\n\t%s\n\t%s", line, shape(a), shape(b))
		}
		if cost, script := Distance(a, b); (cost == 0) != same || (len(script) == 0) != same {
			t.Errorf("%s\n\tdistance %d, %d edits", line, cost, len(script))
		}
	}
}

// spiderSchemas reads the schemas of Spider's tables.json.
func spiderSchemas(t testing.TB) map[string]*Schema {
	text, err := os.ReadFile(filepath.Join(sharedData(t), "spider", "tables.json"))
	if err != nil {
		t.Fatal(err)
	}
	var records []struct {
		DBID    string   `json:"db_id"`
		Tables  []string `json:"table_names_original"`
		Columns [][2]any `json:"column_names_original"`
		Types   []string `json:"column_types"`
	}
	if err := json.Unmarshal(text, &records); err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*Schema{}
	for _, r := range records {
		s := &Schema{}
		for _, name := range r.Tables {
			s.Tables = append(s.Tables, SchemaTable{Name: name})
		}
		for i, c := range r.Columns {
			if table := int(c[0].(float64)); table >= 0 {
				s.Tables[table].Columns = append(s.Tables[table].Columns, SchemaColumn{Name: c[1].(string), Type: r.Types[i]})
			}
		}
		schemas[r.DBID] = s
	}
	return schemas
}

// TestGoldResolves checks that every name in Spider's gold means something and
// that canonical nodes point to what they stand for.
func TestGoldResolves(t *testing.T) {
	schemas := spiderSchemas(t)
	for _, q := range goldQueries(t) {
		n, err := Parse(q.sql)
		if err != nil || !strings.HasPrefix(q.file, "spider") {
			continue
		}
		scopes := Resolve(n, schemas[q.db])
		Walk(n, func(n *Node) bool {
			if n.Kind == Column && scopes.Binding(n).Meaning == MeansNothing {
				t.Errorf("%s: %s\n\t%s.%s means nothing", q.db, q.sql, n.Qualifier, n.Value)
			}
			return true
		})
		checkOrigins(t, n, CanonicalResolved(n, scopes))
	}
}

// checkOrigins checks that every node of a canonical tree has the span of a node
// of the parsed tree, and lies in the clause it came from.
func checkOrigins(t testing.TB, parsed, canonical *Node) {
	t.Helper()
	Walk(canonical, func(n *Node) bool {
		if n.Origin == nil || n.Start != n.Origin.Start || n.End != n.Origin.End {
			t.Fatalf("%s %q stands for nothing", n.Kind, n.Value)
		}
		for _, c := range n.Children {
			if c.Parent != n {
				t.Fatalf("%s %q has the wrong parent", c.Kind, c.Value)
			}
		}
		return true
	})
	before, after := ClauseNodes(parsed), ClauseNodes(canonical)
	if len(before) != len(after) {
		t.Fatalf("%d clauses became %d", len(before), len(after))
	}
	for i := range before {
		Walk(after[i], func(n *Node) bool {
			if n.Start < before[i].Start || n.End > before[i].End {
				t.Fatalf("%s %q left its clause", n.Kind, n.Value)
			}
			return true
		})
	}
}

// TestCanonicalIsInvariant rewrites gold queries in ways that change nothing
// and checks that the canonical form stays.
func TestCanonicalIsInvariant(t *testing.T) {
	schemas := spiderSchemas(t)
	queries := goldQueries(t)
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.SampledFrom(queries).Draw(t, "query")
		n, err := Parse(q.sql)
		if err != nil {
			t.Skip()
		}
		want := Canonical(n, schemas[q.db])
		rewritten := n.Clone()
		renameAliases(t, rewritten, Resolve(rewritten, schemas[q.db]))
		rewrite(t, rewritten)
		text := Render(rewritten)
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		if got := Canonical(again, schemas[q.db]); !Equal(want, got) {
			t.Fatalf("%s\n%s\n%s\n%s", q.sql, text, shape(want), shape(got))
		}
	})
}

// rewrite swaps operands that commute, turns comparisons round, changes the case
// of names, and writes numbers differently.
func rewrite(t *rapid.T, n *Node) {
	turned := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
	Walk(n, func(n *Node) bool {
		if !rapid.Bool().Draw(t, "change") {
			return true
		}
		switch n.Kind {
		case And, Or, List:
			order := rapid.Permutation(n.Children).Draw(t, "order")
			copy(n.Children, order)
		case Compare:
			n.Value = turned[n.Value]
			n.Children[0], n.Children[1] = n.Children[1], n.Children[0]
		case Column, Table:
			if !n.DoubleQuoted {
				n.Value, n.Qualifier = strings.ToUpper(n.Value), strings.ToLower(n.Qualifier)
			}
		case Number:
			n.Value = "0" + n.Value
		}
		return true
	})
}

// renameAliases gives some sources another alias and changes the names that
// refer to them.
func renameAliases(t *rapid.T, n *Node, scopes *Scopes) {
	renamed := map[*Source]string{}
	Walk(n, func(n *Node) bool {
		alias := n.Child(Alias)
		if source := scopes.Source(n); source != nil && alias != nil && rapid.Bool().Draw(t, "rename") {
			alias.Value = "alias" + strconv.Itoa(len(renamed))
			renamed[source] = alias.Value
		}
		return true
	})
	Walk(n, func(n *Node) bool {
		if name, found := renamed[scopes.Binding(n).Source]; found && n.Qualifier != "" {
			n.Qualifier = name
		}
		return true
	})
}
