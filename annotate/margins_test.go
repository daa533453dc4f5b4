package annotate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"caper/data"
)

// marginBounds cut margins below alpha into bins.
var marginBounds = []float64{0.25, 0.5, 0.75, 1}

// margins is the distribution of the margins of a run.
type margins struct {
	tuples, enclosing int
	// bins count the margins below each bound, then those that are 1.
	bins [5]int
	sum  float64
}

func (m *margins) add(margin float64) {
	m.tuples++
	m.sum += margin
	m.bins[len(marginBounds)-len(slices.DeleteFunc(slices.Clone(marginBounds), func(b float64) bool { return margin >= b }))]++
}

func (m *margins) share(bin int) float64 { return float64(m.bins[bin]) / float64(m.tuples) }

// marginsOf annotates one rollout in so many and returns the distribution of the
// margins as annotation writes them, and times the severity that a training with
// loss.severity gives them: edit cost over its 75th percentile, clipped to
// [0.25, 1] (caper.md 1.4.6).
func marginsOf(t testing.TB, bench *data.Benchmark, path string, share int, o Options) (plain, severe margins) {
	t.Helper()
	var tuples []data.Tuple
	_, err := Run(t.Context(), bench, every(share, withRows(bench, data.ReadRollouts(path, bench, "dev"))), o, func(tuple data.Tuple) error {
		tuples = append(tuples, tuple)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var costs []float64
	for _, tuple := range tuples {
		costs = append(costs, tuple.EditCost)
	}
	slices.Sort(costs)
	reference := costs[len(costs)*3/4]
	for _, tuple := range tuples {
		plain.add(tuple.Margin)
		severe.add(tuple.Margin * min(max(tuple.EditCost/reference, 0.25), 1))
		if !tuple.RootClause {
			plain.enclosing++
		}
	}
	severe.enclosing = plain.enclosing
	return plain, severe
}

// marginTable writes the distribution for every granularity, with and without
// dependency edges and severity, and checks what each must do to it.
func marginTable(t testing.TB, name string, share int) {
	bench := openShared(t, name)
	path := shared(t, "predictions", name+"_dev.jsonl")
	table := "| granularity | edges | severity | tuples | enclosing | < 0.25 | < 0.5 | < 0.75 | < 1 | 1 | mean |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
	spread := make(map[Granularity]float64) // share below alpha
	for _, g := range []Granularity{Top, Nested, Predicate} {
		for _, edges := range []bool{false, true} {
			o := DefaultOptions()
			o.Granularity, o.DependencyEdges = g, edges
			plain, severe := marginsOf(t, bench, path, share, o)
			for i, m := range []margins{plain, severe} {
				table += fmt.Sprintf("| %s | %v | %v | %d | %d |", g, edges, i == 1, m.tuples, m.enclosing)
				for bin := range m.bins {
					table += fmt.Sprintf(" %.1f %% |", 100*m.share(bin))
				}
				table += fmt.Sprintf(" %.3f |\n", m.sum/float64(m.tuples))
			}
			if g == Top && plain.share(4) != 1 {
				t.Errorf("top, edges %v: %.1f %% of the margins are alpha", edges, 100*plain.share(4))
			}
			if severe.share(4) >= plain.share(4) {
				t.Errorf("%s: severity lowers no margin", g)
			}
			if !edges {
				spread[g] = 1 - plain.share(4)
			}
		}
	}
	t.Logf("%s, one rollout in %d:\n%s", name, share, strings.ReplaceAll(strings.ReplaceAll(table, "true", "yes"), "false", "no"))
	if spread[Nested] >= spread[Predicate] {
		t.Errorf("below alpha are %.3f of the margins at nested, %.3f at predicate", spread[Nested], spread[Predicate])
	}
}

// TestMargins: at top every margin is alpha, whatever the edges; finer units and
// severity spread them.
func TestMargins(t *testing.T) {
	skipWalk(t)
	marginTable(t, "spider", 97)
}

// BenchmarkMargins writes the tables for all rollouts, superhero's too (with -v).
func BenchmarkMargins(b *testing.B) {
	for range b.N {
		marginTable(b, "spider", 1)
		marginTable(b, "bird", 1)
	}
}
