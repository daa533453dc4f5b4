package annotate

import (
	"fmt"
	"math"
	"testing"

	"caper/data"
	"caper/sql"
)

// The first draw is uniform over the clause kinds that have mutations, then over the
// operators that have some, then over these, though which have is found out late.
func TestDrawsAreUniform(t *testing.T) {
	skipWalk(t)
	const text = "SELECT name FROM pet WHERE weight > 2 GROUP BY name ORDER BY name LIMIT 3"
	// By another way: every operator is asked, and the empty ones are left out.
	want := map[string]float64{}
	q := petQuery(t, text)
	own, _ := q.strata()
	var full [][]*drawer
	for _, s := range own {
		var operators []*drawer
		for _, w := range s.operators {
			if len(w.list(q)) > 0 {
				operators = append(operators, w)
			}
		}
		if len(operators) > 0 {
			full = append(full, operators)
		}
	}
	for _, operators := range full {
		for _, w := range operators {
			for _, m := range w.mutations {
				want[describe(m)] += 1 / float64(len(full)*len(operators)*len(w.mutations))
			}
		}
	}

	const draws = 20_000
	have := map[string]float64{}
	for seed := range uint64(draws) {
		o := DefaultOptions()
		o.Seed = seed
		m, ok := o.newDraws(petQuery(t, text), data.Tuple{}).next(true)
		if !ok {
			t.Fatal("nothing to draw")
		}
		have[describe(m)]++
	}
	for what, p := range want {
		if n := have[what]; math.Abs(n-p*draws) > 5*math.Sqrt(p*draws) {
			t.Errorf("%s: %v of %d draws, want %.0f", what, n, draws, p*draws)
		}
		delete(have, what)
	}
	if len(have) > 0 {
		t.Errorf("drawn, but not listed: %v", have)
	}
}

// All mutations are drawn once, and none twice.
func TestDrawsAreExhaustive(t *testing.T) {
	const text = "SELECT name, weight FROM pet WHERE weight > 2 AND id IN (SELECT id FROM owner) ORDER BY name"
	count := map[string]int{}
	for _, m := range petQuery(t, text).mutations() {
		count[describe(m)]++
	}
	d := DefaultOptions().newDraws(petQuery(t, text), data.Tuple{})
	for early := true; ; early = !early {
		m, ok := d.next(early)
		if !ok {
			break
		}
		count[describe(m)]--
	}
	for what, n := range count {
		if n != 0 {
			t.Errorf("%s: drawn %d times too few", what, n)
		}
	}
}

func describe(m mutation) string {
	if m.new == nil {
		return fmt.Sprint(m.operator, " ", m.old.Start, " drops it")
	}
	return fmt.Sprint(m.operator, " ", m.old.Start, " ", sql.Render(m.new), " ", m.adds)
}

// skipWalk leaves a long walk over data out of short runs, such as those under the race
// detector: it has one goroutine.
func skipWalk(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a long walk over data on one goroutine")
	}
}
