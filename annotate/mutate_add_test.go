package annotate

import (
	"testing"

	"caper/data"
)

// TestAddedClauses: a clause that is added is the rejected unit and v*; what
// stands in its place is the chosen one, nothing at the end of the query.
func TestAddedClauses(t *testing.T) {
	correct := "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet) ORDER BY id;"
	for _, c := range []struct {
		operator, query                string // of the wrong query
		prefix, chosen, rejected, root string
		clause                         string
		index, count                   int
	}{
		{"limit.added", "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet) ORDER BY id LIMIT 1;",
			"SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet) ORDER BY id", "", " LIMIT 1;", "LIMIT 1", "LIMIT", 4, 5},
		{"group_by.added", "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet) GROUP BY city ORDER BY id;",
			"SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet) ", "ORDER BY id;", "GROUP BY city ", "GROUP BY city", "GROUP BY", 3, 5},
		{"limit.added", "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet LIMIT 1) ORDER BY id;",
			"SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet", ") ", " LIMIT 1", "LIMIT 1", "LIMIT", 2, 4},
	} {
		q := petQuery(t, correct)
		found := false
		for _, m := range q.mutations() {
			mutant, f, ok := q.mutate(m, Nested)
			if !ok || m.operator != c.operator || mutant.text != c.query {
				continue
			}
			found = true
			got := DefaultOptions().pairs(data.Tuple{}, q.statement, mutant, f)[0]
			want := [...]any{c.prefix, c.chosen, c.rejected, c.root, c.clause, c.index, c.count, 1.0, true}
			have := [...]any{got.Prefix, got.Chosen, got.Rejected, mutant.text[got.Root.Start:got.Root.End],
				got.Clause, got.ClauseIndex, got.ClauseCount, got.Margin, got.RootClause}
			if have != want {
				t.Errorf("%s\n gives %q\n want  %q", c.query, have, want)
			}
		}
		if !found {
			t.Errorf("%s is no mutant", c.query)
		}
	}
}
