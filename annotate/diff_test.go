package annotate

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"caper/sql"
)

// TestCompare gives pairs of queries, the clauses that differ and the cost, counted
// by hand: every node inserted, deleted or given another value costs 1.
func TestCompare(t *testing.T) {
	schema := &sql.Schema{Tables: []sql.SchemaTable{
		{Name: "owner", Columns: []sql.SchemaColumn{{Name: "id"}, {Name: "city"}}},
		{Name: "pet", Columns: []sql.SchemaColumn{{Name: "id"}, {Name: "weight"}}},
	}}
	for _, c := range []struct {
		a, b    string
		clauses []sql.ClauseKind
		cost    int
	}{
		{"SELECT a FROM t WHERE x > 1 AND y = 2", "select T1.a from t as T1 where 2 = T1.y and 1 < T1.x;", nil, 0},
		{"SELECT a FROM t", "SELECT b FROM t", []sql.ClauseKind{"SELECT"}, 1},
		{"SELECT a FROM t", "SELECT a FROM t LIMIT 1", []sql.ClauseKind{"LIMIT"}, 2},                                // limit, number
		{"SELECT a FROM t WHERE x = 1", "SELECT a FROM t WHERE x = 1 OR x = 2", []sql.ClauseKind{"WHERE"}, 4},       // or, compare, column, number
		{"SELECT a FROM t WHERE x = 1", "SELECT a FROM t GROUP BY x", []sql.ClauseKind{"WHERE", "GROUP BY"}, 4 + 2}, // where compare column number; group-by column
		{"SELECT a FROM t ORDER BY 1 DESC", "SELECT a FROM t ORDER BY a", []sql.ClauseKind{"ORDER BY"}, 1},
		{"SELECT a FROM t", "SELECT a FROM t UNION SELECT b FROM t", []sql.ClauseKind{"SETOP"}, 6}, // set-op, select, projection, column, from, table
		{"SELECT a FROM t INTERSECT SELECT b FROM t", "SELECT a FROM t EXCEPT SELECT b FROM t", []sql.ClauseKind{"SETOP"}, 1},
		{"VALUES (1)", "VALUES (2)", []sql.ClauseKind{"SELECT"}, 1},
		{"SELECT city FROM owner JOIN pet ON owner.id = pet.id", "SELECT owner.city FROM owner JOIN pet ON owner.id = pet.id", nil, 0}, // the schema tells
	} {
		d, _, err := Compare(c.a, c.b, schema)
		if err != nil {
			t.Fatal(err)
		}
		same := len(d.Clauses) == len(c.clauses)
		for i := range min(len(d.Clauses), len(c.clauses)) {
			same = same && d.Clauses[i].Kind == c.clauses[i]
		}
		if !same || d.Cost != c.cost {
			t.Errorf("%s\n%s\ncost %d, want %d; clauses %+v, want %v", c.a, c.b, d.Cost, c.cost, d.Clauses, c.clauses)
		}
	}
	var syntax *sql.ParseError
	if _, isB, err := Compare("SELECT 1", "SELECT FROM", nil); !isB || !errors.As(err, &syntax) {
		t.Errorf("isB %v, %v", isB, err)
	}
	if _, isB, err := Compare("", "SELECT FROM", nil); isB || !errors.As(err, &syntax) {
		t.Errorf("isB %v, %v", isB, err)
	}
}

// TestCompareHolds: a query does not differ from itself; the way back costs the
// same; edits and clauses add up to the cost; marks lie in the text, in order and
// apart; the steps hold every edit once.
func TestCompareHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyBlock(t, 1), anyBlock(t, 1)
		there, _, err := Compare(a, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		if none, _, _ := Compare(a, a, nil); none.Cost != 0 || len(none.Edits) != 0 || len(none.Clauses) != 0 {
			t.Fatalf("%q differs from itself: %+v", a, none)
		}
		if back, _, _ := Compare(b, a, nil); back.Cost != there.Cost {
			t.Fatalf("%q to %q costs %d, back %d", a, b, there.Cost, back.Cost)
		}
		edits, clauses, steps := 0, 0, 0
		for _, e := range there.Edits {
			edits++
			if e.Op == sql.Relabel && e.A.Kind != e.B.Kind {
				edits++
			}
		}
		for _, c := range there.Clauses {
			clauses += c.Cost
		}
		for _, s := range there.Steps(a, b) {
			steps += s.Size
		}
		if edits != there.Cost || clauses != there.Cost || steps != len(there.Edits) {
			t.Fatalf("cost %d; edits cost %d, clauses %d; %d of %d edits in steps", there.Cost, edits, clauses, steps, len(there.Edits))
		}
		checkMarks(t, there.MarksA(a), a)
		checkMarks(t, there.MarksB(b), b)
	})
}

func checkMarks(t *rapid.T, marks []Span, text string) {
	at := 0
	for _, m := range marks {
		if m.Start < at || m.End <= m.Start || m.End > len(text) {
			t.Fatalf("marks %v of %q", marks, text)
		}
		at = m.End + 1
	}
}
