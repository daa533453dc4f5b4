package annotate

import (
	"strings"
	"testing"
)

// TestNoUnseenDifference: the rule test-suite strips DISTINCT, and without it
// "id >= 2" has a row less here. With it, as written, the names are the same.
// Without rows two queries look the same, however many columns they have: here the rule,
// which strips DISTINCT, gets rows, and whoever runs the queries as written gets none.
func TestNothingLooksLikeNothing(t *testing.T) {
	b := petBenchmark(t)
	o := DefaultOptions()
	o.Inject, o.PerClause, o.Attempts = 1000, 1000, 1000
	const empty, full = "SELECT name FROM pet GROUP BY 1 + 1 HAVING count(DISTINCT id - id) > 1", "SELECT name FROM pet GROUP BY 1 + 1 HAVING count(DISTINCT id - id) > 0"
	db, err := b.Database("pets")
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{empty, full} {
		tuples, _ := annotated(t, b, petRollouts(query, query), o)
		for _, tuple := range tuples {
			chosen, err := db.Query(t.Context(), tuple.SQLChosen)
			if err != nil {
				t.Fatal(err)
			}
			rejected, err := db.Query(t.Context(), tuple.SQLRejected)
			if err == nil && len(chosen.Rows)+len(rejected.Rows) == 0 {
				t.Errorf("%s: both return nothing:\n%s\n%s", tuple.Operator, tuple.SQLChosen, tuple.SQLRejected)
			}
		}
		if query == full && len(tuples) == 0 {
			t.Error("no tuples of a query that returns rows")
		}
	}
}

func TestNoUnseenDifference(t *testing.T) {
	b := petBenchmark(t)
	o := DefaultOptions()
	o.Inject, o.PerClause, o.Attempts = 1000, 1000, 1000
	for _, c := range []struct {
		query string
		want  int
	}{
		{"SELECT DISTINCT name FROM pet WHERE id >= 1", 0},
		{"SELECT name FROM pet WHERE id >= 1", 1},
	} {
		tuples, _ := annotated(t, b, petRollouts(c.query, c.query), o)
		got := 0
		for _, tuple := range tuples {
			if strings.HasSuffix(tuple.SQLRejected, "WHERE id >= 2") {
				got++
			}
		}
		if got != c.want || len(tuples) < 10 {
			t.Errorf("%s: %d of %d tuples reject id >= 2, want %d", c.query, got, len(tuples), c.want)
		}
	}
}
