package curriculum

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"caper/data"
	"caper/data/sample"
	"caper/sql"
)

// bench is a built-in benchmark of some databases. It is made once.
var bench = sync.OnceValues(func() (*data.Benchmark, error) {
	dir, err := os.MkdirTemp("", "curriculum-test-")
	if err != nil {
		return nil, err
	}
	o := sample.DefaultOptions()
	o.TrainDatabases, o.TestDatabases, o.NewWordsDatabases, o.LargeEvery = 12, 1, 1, 0
	if _, err := sample.Write(context.Background(), filepath.Join(dir, "bench"), o); err != nil {
		return nil, err
	}
	return data.OpenBenchmark(filepath.Join(dir, "bench"), "spider")
})

func TestMain(m *testing.M) {
	code := m.Run()
	if b, err := bench(); err == nil {
		b.Close()
		os.RemoveAll(filepath.Dir(b.Dir))
	}
	os.Exit(code)
}

func openBench(t *testing.T) (*data.Benchmark, []data.Question) {
	t.Helper()
	b, err := bench()
	if err != nil {
		t.Fatal(err)
	}
	questions, err := b.Questions("train")
	if err != nil {
		t.Fatal(err)
	}
	return b, questions
}

func newSiblings(b *data.Benchmark) *Siblings {
	return &Siblings{Bench: b, Reworder: Template{}, Tries: 12, Rows: 1000, Seed: 7}
}

// Siblings of every question of a benchmark: what is made executes, on a connection of its
// own, has rows, and another result than the original; a harder one is no smaller, in
// clauses and in nodes of its canonical tree, an easier one no larger; the question says
// what the query says.
func TestSiblings(t *testing.T) {
	b, questions := openBench(t)
	s := newSiblings(b)
	for _, origin := range []Origin{Harder, Easier} {
		changes, refused := map[string]int{}, map[string]int{}
		for i, q := range questions {
			sibling, reasons, err := s.Make(t.Context(), i, Item{Question: q}, origin)
			if err != nil {
				t.Fatal(err)
			}
			if reasons != nil {
				for reason := range reasons {
					refused[reason]++
				}
				continue
			}
			changes[sibling.Change]++
			checkSibling(t, b, q, sibling)
		}
		t.Logf("%s: %v; tries that failed: %v", origin, changes, refused)
		made := 0
		for _, n := range changes {
			made += n
		}
		// Most of what has no harder sibling is nested in FROM already.
		least := map[Origin][2]int{Harder: {70, 5}, Easier: {80, 6}}[origin]
		if made*100 < least[0]*len(questions) || len(changes) < least[1] {
			t.Errorf("%s: only %d siblings of %d questions, by %d kinds of change", origin, made, len(questions), len(changes))
		}
	}
}

func checkSibling(t *testing.T, b *data.Benchmark, of data.Question, sibling Item) {
	t.Helper()
	q := sibling.Question
	before, after := rows(t, b, of.DBID, of.Gold), rows(t, b, q.DBID, q.Gold)
	if len(after) == 0 || slices.Equal(before, after) {
		t.Errorf("%s\n%s: no rows, or those of the original", of.Gold, q.Gold)
	}
	schema, err := b.Schema(q.DBID)
	if err != nil {
		t.Fatal(err)
	}
	a, c := parsed(t, of.Gold), parsed(t, q.Gold)
	if sql.Equal(sql.Canonical(a, schema), sql.Canonical(c, schema)) {
		t.Errorf("%s\n%s mean the same", of.Gold, q.Gold)
	}
	nodes := strings.Count(shape(c), "(") - strings.Count(shape(a), "(")
	clauses := len(sql.Clauses(q.Gold)) - len(sql.Clauses(of.Gold))
	if sibling.Origin == Harder && (nodes < 0 || clauses < 0) || sibling.Origin == Easier && (nodes > 0 || clauses > 0) {
		t.Errorf("%s sibling has %d nodes and %d clauses more:\n%s\n%s", sibling.Origin, nodes, clauses, of.Gold, q.Gold)
	}
	if missing := disagreement(c, q.Question, schema); missing != "" {
		t.Errorf("%s\n%s\n%s", q.Gold, q.Question, missing)
	}
	if q.Question == of.Question || q.ID == of.ID {
		t.Errorf("%s: the question or its id is the original's", q.Gold)
	}
}

func parsed(t *testing.T, text string) *sql.Node {
	t.Helper()
	n, err := sql.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func shape(n *sql.Node) string {
	text := "(" + string(n.Kind)
	for _, c := range n.Children {
		text += shape(c)
	}
	return text + ")"
}

// rows are those of a query, each as text, sorted where the query does not sort.
func rows(t *testing.T, b *data.Benchmark, dbID, query string) (all []string) {
	t.Helper()
	db, err := stdsql.Open("sqlite3", "file:"+b.DatabasePath(dbID)+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	cursor, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer cursor.Close()
	columns, err := cursor.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for cursor.Next() {
		row, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			targets[i] = &row[i]
		}
		if err := cursor.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(row...))
	}
	if err := cursor.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

var literal = regexp.MustCompile(`'[^']*'|\b[0-9]+(\.[0-9]+)?\b`)

// disagreement compares a question with a query by their words alone: they must have the
// same literals, except that a limit of 1 is said by a singular, and that LIKE has its
// wildcards; and the question must name every column that is no key of a table, and every
// aggregate.
func disagreement(tree *sql.Node, question string, schema *sql.Schema) string {
	var inSQL []string
	said := strings.ToLower(question)
	problem := ""
	aggregates := map[string][]string{"count": {"number of", "count", "how many"}, "avg": {"average", "mean"}, "sum": {"total", "sum of"},
		"max": {"highest", "maximum", "largest"}, "min": {"lowest", "minimum", "smallest"}}
	sql.Walk(tree, func(n *sql.Node) bool {
		switch n.Kind {
		case sql.String:
			inSQL = append(inSQL, "'"+strings.Trim(n.Value, "%")+"'")
		case sql.Number:
			if n.Parent.Kind != sql.Limit || n.Value != "1" || strings.Contains(question, " 1") {
				inSQL = append(inSQL, n.Value)
			}
		case sql.Column:
			if !isKey(schema, n.Value) && n.Value != sample.TallyName && !strings.Contains(said, n.Value) {
				problem = "the question does not name " + n.Value
			}
		case sql.Aggregate:
			if !slices.ContainsFunc(aggregates[n.Value], func(word string) bool { return strings.Contains(said, word) }) {
				problem = "the question does not say " + n.Value
			}
		}
		return true
	})
	inQuestion := literal.FindAllString(question, -1)
	slices.Sort(inSQL)
	slices.Sort(inQuestion)
	// A key that is sorted by may be said once where the query has it twice.
	if a, b := slices.Compact(inSQL), slices.Compact(inQuestion); !slices.Equal(a, b) {
		problem = fmt.Sprintf("literals %q in the query, %q in the question", a, b)
	}
	return problem
}

func isKey(schema *sql.Schema, name string) bool {
	for _, t := range schema.Tables {
		if c := t.Column(name); c != nil && c.PrimaryKey {
			return true
		}
	}
	return slices.ContainsFunc(schema.ForeignKeys, func(k sql.ForeignKey) bool { return k.Column == name })
}
