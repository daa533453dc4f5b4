package annotate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"caper/data"
	"caper/sql"
)

// TestPredicateTuples works through faults in parts of clauses. Each want is
// prefix|chosen|rejected|margin, which for a clause around the part is
// exp(-d^2/8) at the distance d that the comment counts.
func TestPredicateTuples(t *testing.T) {
	for _, c := range []struct {
		operator, right, wrong string
		want                   []string
	}{
		// literal, comparison, and: 2 edges
		{"where.literal", "SELECT name FROM owner WHERE id > 1 AND city = 'x' ORDER BY id", "SELECT name FROM owner WHERE id > 1 AND city = 'Ann' ORDER BY id",
			[]string{
				"SELECT name FROM owner WHERE id > 1| AND city = 'x' | AND city = 'Ann' |1.000",
				"SELECT name FROM owner |WHERE id > 1 AND city = 'x' |WHERE id > 1 AND city = 'Ann' |0.607",
			}},
		// column, (item,) projection: 1
		{"select.column", "SELECT name, id FROM owner", "SELECT city, id FROM owner",
			[]string{"|SELECT name|SELECT city|1.000", "|SELECT name, id |SELECT city, id |0.882"}},
		// column, comparison, on, join, from: 4
		{"from.key", "SELECT 1 FROM owner JOIN pet ON owner.id = owner_id", "SELECT 1 FROM owner JOIN pet ON owner.id = pet.id", nil},
		{"from.key", "SELECT 1 FROM owner JOIN pet ON owner.id = pet.owner_id;", "SELECT 1 FROM owner JOIN pet ON owner.id = pet.id;",
			[]string{
				"SELECT 1 FROM owner| JOIN pet ON owner.id = pet.owner_id;| JOIN pet ON owner.id = pet.id;|1.000",
				"SELECT 1 |FROM owner JOIN pet ON owner.id = pet.owner_id;|FROM owner JOIN pet ON owner.id = pet.id;|0.135",
			}},
		// what is one too many stands where the query ends: 1
		{"where.added_conjunct", "SELECT name FROM owner WHERE id > 1;", "SELECT name FROM owner WHERE id > 1 AND name = 'Bob';",
			[]string{
				"SELECT name FROM owner WHERE id > 1|| AND name = 'Bob';|1.000",
				"SELECT name FROM owner |WHERE id > 1;|WHERE id > 1 AND name = 'Bob';|0.882",
			}},
		// ... or where the next clause starts: 0 edges, the added key is the part
		{"group_by.added_key", "SELECT 1 FROM owner GROUP BY id LIMIT 3", "SELECT 1 FROM owner GROUP BY id, name LIMIT 3",
			[]string{
				"SELECT 1 FROM owner GROUP BY id| LIMIT 3|, name |1.000",
				"SELECT 1 FROM owner |GROUP BY id |GROUP BY id, name |0.882",
			}},
		// a part that is missing is its clause's fault
		{"where.conjunct", "SELECT 1 FROM owner WHERE id > 1 AND name = 'x'", "SELECT 1 FROM owner WHERE id > 1",
			[]string{"SELECT 1 FROM owner |WHERE id > 1 AND name = 'x'|WHERE id > 1|1.000"}},
		// the inner comparison's clause has one part; the outer one is 4 edges up
		// (literal, comparison, where, select, in), its AND 5
		{"where.literal", "SELECT 1 FROM owner WHERE city = 'x' AND id IN (SELECT owner_id FROM pet WHERE name = 'y')",
			"SELECT 1 FROM owner WHERE city = 'x' AND id IN (SELECT owner_id FROM pet WHERE name = 'Ann')",
			[]string{
				"SELECT 1 FROM owner WHERE city = 'x' AND id IN (SELECT owner_id FROM pet |WHERE name = 'y'|WHERE name = 'Ann'|1.000",
				"SELECT 1 FROM owner WHERE city = 'x'| AND id IN (SELECT owner_id FROM pet WHERE name = 'y')| AND id IN (SELECT owner_id FROM pet WHERE name = 'Ann')|0.135",
			}},
	} {
		q := petQuery(t, c.right)
		q.statement, _ = parse(c.right, pets, Predicate)
		q.scopes = sql.Resolve(q.tree, pets)
		o := DefaultOptions()
		o.Granularity = Predicate
		var got []string
		for _, m := range q.mutations() {
			mutant, f, ok := q.mutate(m, Predicate)
			if m.operator != c.operator || !ok || mutant.text != c.wrong {
				continue
			}
			for i, p := range o.pairs(data.Tuple{Source: "injection"}, q.statement, mutant, f) {
				if p.ID = p.ContentID(); p.RootClause != (i == 0) {
					t.Errorf("%s: tuple %d has root clause %v", c.wrong, i, p.RootClause)
				}
				p.DBID = "pets"
				if err := p.Validate(); err != nil {
					t.Errorf("%s: %v", c.wrong, err)
				}
				got = append(got, fmt.Sprintf("%s|%s|%s|%.3f", p.Prefix, p.Chosen, p.Rejected, p.Margin))
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s of %s: %s", c.operator, c.right, diff)
		}
	}
}
