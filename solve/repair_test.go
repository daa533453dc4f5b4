package solve

import (
	"context"
	"strings"
	"testing"
)

func repairer(d Databases) *Repairer {
	return &Repairer{Examiner: NewExaminer(d, 1<<20), RepairOptions: DefaultRepairOptions()}
}

// Each operator on the query that it is for.
func TestRepair(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	for _, c := range []struct{ query, by, want string }{
		// Names.
		{"SELECT name FROM makers", "identifier", "SELECT name FROM maker AS makers"},
		{"SELECT Contry FROM maker", "identifier", "SELECT maker.country FROM maker"},
		{"SELECT modle FROM car", "", ""}, // too far
		{"SELECT c.name FROM car c JOIN maker m ON c.maker_id = m.id", "identifier", "SELECT m.name FROM car AS c JOIN maker AS m ON c.maker_id = m.id"},
		{"SELECT country FROM car WHERE model = 'panda'", "identifier",
			"SELECT maker.country FROM car JOIN maker ON car.maker_id = maker.id WHERE model = 'panda'"},
		{"SELECT T1.model FROM car T1 JOIN maker T2 ON T1.maker_id = T2.model", "", ""}, // T1.model is no partner of T1.maker_id
		{"SELECT contry FROM makers", "identifier", "SELECT makers.country FROM maker AS makers"},
		// Text behind.
		{"SELECT name FROM maker; Hope that helps!", "cut-tail", "SELECT name FROM maker"},
		{"SELECT name FROM maker LIMIT 1;.030 sec", "cut-tail", "SELECT name FROM maker LIMIT 1"},
		{"SELECT name FROM maker /* next: */ SELECT country FROM maker", "cut-tail", "SELECT name FROM maker /* next: */"},
		// Literals.
		{"SELECT country FROM maker WHERE name = 'volvo'", "literal", "SELECT country FROM maker WHERE name = 'Volvo'"},
		{"SELECT country FROM maker WHERE name = \"VOLVO \"", "literal", "SELECT country FROM maker WHERE name = 'Volvo'"},
		{"SELECT year FROM sale WHERE buyer = 'Lee'", "literal", "SELECT year FROM sale WHERE buyer = 'Ann Lee'"},
		{"SELECT country FROM maker WHERE name = 'Vollvo'", "literal", "SELECT country FROM maker WHERE name = 'Volvo'"},
		{"SELECT model FROM car JOIN maker ON maker_id = maker.id WHERE name = 'fiat' AND model = 'PANDA'", "literal",
			"SELECT model FROM car JOIN maker ON maker_id = maker.id WHERE name = 'Fiat' AND model = 'panda'"},
		{"SELECT count(*) FROM maker WHERE country = 'sweden'", "literal", "SELECT count(*) FROM maker WHERE country = 'Sweden'"},
		{"SELECT name FROM maker WHERE name IN ('saab', 'opel')", "literal", "SELECT name FROM maker WHERE name IN ('Saab', 'opel')"},
		{"SELECT name FROM maker WHERE name = 'Tesla'", "", ""},
		// Columns.
		{"SELECT model FROM car JOIN maker ON maker_id = maker.id WHERE country = 'Volvo'", "column",
			"SELECT model FROM car JOIN maker ON maker_id = maker.id WHERE maker.name = 'Volvo'"},
		{"SELECT name FROM maker WHERE name LIKE '%taly%'", "column", "SELECT name FROM maker WHERE maker.country LIKE '%taly%'"},
		// Formats.
		{"SELECT model FROM car WHERE built = '1980-01-31'", "format", "SELECT model FROM car WHERE built = '1980/01/31'"},
		{"SELECT model FROM car WHERE share = 50", "format", "SELECT model FROM car WHERE share = 0.5"},
		{"SELECT model FROM car WHERE share >= 50", "format", "SELECT model FROM car WHERE share >= 0.5"},
		// One condition that keeps all rows out.
		{"SELECT model FROM car WHERE price > 5 AND price > 10", "relax", "SELECT model FROM car WHERE price > 5 AND price >= 10"},
		// Joins.
		{"SELECT model FROM car JOIN maker ON car.model = maker.id", "join-key", "SELECT model FROM car JOIN maker ON car.maker_id = maker.id"},
		{"SELECT name FROM maker WHERE name IN (SELECT maker_id FROM car)", "join-key", "SELECT name FROM maker WHERE id IN (SELECT maker_id FROM car)"},
		{"SELECT name FROM maker JOIN sale ON maker.name = sale.buyer", "left-join", "SELECT name FROM maker LEFT JOIN sale ON maker.name = sale.buyer"},
		// What works stays.
		{"SELECT name FROM maker", "", ""},
		{"SELECT name FROM maker WHERE name = 'Volvo'", "", ""},
	} {
		r, err := repairer(d).Repair(context.Background(), pool(rollout("a", c.query)))
		if err != nil {
			t.Fatal(err)
		}
		x := r.Candidates[0]
		var by []string
		for _, step := range x.Repairs {
			by = append(by, step.By)
		}
		want := c.want
		if c.by == "" {
			want = c.query
		}
		if got := strings.Join(by, ","); got != c.by || x.SQL != want {
			t.Errorf("%s\n  by %q: %s (%s %s)\n  want %q: %s", c.query, got, x.SQL, x.State, x.Message, c.by, want)
		}
		if len(x.Repairs) > 0 && (x.Result == nil || x.Repairs[0].Of != c.query) {
			t.Errorf("%s: repaired to what did not run, or without its origin: %+v", c.query, x)
		}
	}
}

// Where several generators agree that there is nothing, nothing is the answer.
func TestAgreementOnNothingStays(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	empty := func(n int) Pool {
		var all []Candidate
		for i := range n {
			all = append(all, rollout(string(rune('a'+i)), "SELECT country FROM maker WHERE name = 'volvo'"))
		}
		return pool(all...)
	}
	for n, wantRepair := range map[int]bool{1: true, 2: true, 3: false, 5: false} {
		r, err := repairer(d).Repair(context.Background(), empty(n))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Candidates {
			if repaired := len(x.Repairs) > 0; repaired != wantRepair {
				t.Errorf("%d groups: repaired %v", n, repaired)
			}
		}
	}
	mixed := pool(append(empty(3).Candidates, rollout("z", "SELECT country FROM maker WHERE name = 'Volvo'"))...)
	r, err := repairer(d).Repair(context.Background(), mixed)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Candidates {
		if x.State != Clean {
			t.Errorf("one group has rows, and %s stays %s", x.SQL, x.State)
		}
	}
}

// A query that no budget of rounds can mend ends as what it is.
func TestRoundsEnd(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	r := repairer(d)
	query := "SELECT Contry FROM makers WHERE Name = 'volvo'" // names first, then the literal
	for rounds, want := range map[int]State{0: Rejected, 1: Empty, 2: Clean} {
		r.Rounds = rounds
		out, err := r.Repair(context.Background(), pool(rollout("a", query)))
		if err != nil {
			t.Fatal(err)
		}
		if x := out.Candidates[0]; x.State != want || len(x.Repairs) != rounds {
			t.Errorf("%d rounds: %s after %d repairs: %s", rounds, x.State, len(x.Repairs), x.SQL)
		}
	}
}

// A query beside a copy of it that was mended before is one attempt, with one vote.
func TestMendedCopyIsNoSecondVote(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	broken, other := rollout("a", "SELECT name FROM makers"), rollout("b", "SELECT country FROM maker")
	once, err := repairer(d).Repair(context.Background(), pool(broken, other))
	if err != nil {
		t.Fatal(err)
	}
	mended := once.Candidates[0].Candidate
	again, err := repairer(d).Repair(context.Background(), pool(broken, mended, other))
	if err != nil {
		t.Fatal(err)
	}
	if len(mended.Repairs) == 0 || len(once.Candidates) != 2 || len(again.Candidates) != 2 {
		t.Errorf("%d candidates with a mended copy, %d without: %+v", len(again.Candidates), len(once.Candidates), mended.Repairs)
	}
}
