package annotate

import (
	"strings"
	"testing"
)

// TestNoUnseenDifference: the rule test-suite strips DISTINCT, and without it
// "id >= 2" has a row less here. With it, as written, the names are the same.
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
