package policy

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"caper/sql"
)

// groups draws groups of flat queries: clauses in canonical order.
func groups(least, most int) *rapid.Generator[[]Sample] {
	sample := rapid.Custom(func(t *rapid.T) Sample {
		s := Sample{Correct: rapid.Bool().Draw(t, "correct")}
		chosen := rapid.SliceOfNDistinct(rapid.IntRange(0, len(canonical)-1), least, most, rapid.ID).Draw(t, "kinds")
		for i, kind := range canonical {
			for _, c := range chosen {
				if c == i {
					s.Kinds = append(s.Kinds, kind)
					s.Scores = append(s.Scores, rapid.Float64Range(0.001, 0.999).Draw(t, "score"))
				}
			}
		}
		return s
	})
	return rapid.SliceOfN(sample, 2, 8)
}

// grpo are the advantages of plain GRPO: (e - mean e) / (deviation of e + epsilon), of
// rewards that sum up each sample's.
func grpo(o Options, group []Sample) []float64 {
	var totals []float64
	for _, s := range group {
		total := 0.0
		for _, r := range o.Rewards(s) {
			total += r
		}
		totals = append(totals, total)
	}
	mean, square := 0.0, 0.0
	for _, x := range totals {
		mean += x / float64(len(totals))
	}
	for _, x := range totals {
		square += (x - mean) * (x - mean) / float64(len(totals))
	}
	var all []float64
	for _, x := range totals {
		all = append(all, (x-mean)/(math.Sqrt(square)+epsilon))
	}
	return all
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)) }

// One clause a query, in every mode, or no clause rewards and no discount: plain GRPO.
func TestSpecialCasesAreGRPO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check := func(o Options, group []Sample) {
			got, err := o.Advantages(group)
			if err != nil {
				t.Fatal(err)
			}
			if got == nil {
				return // no signal: skipped
			}
			for i, want := range grpo(o, group) {
				for k, a := range got[i] {
					if !near(want, a) {
						t.Fatalf("%+v: sample %d, clause %d: %g, want %g", o, i, k, a, want)
					}
				}
			}
		}
		o := DefaultOptions()
		o.Clauses = 0
		check(o, groups(1, 6).Draw(t, "group"))
		for _, mode := range []Mode{Aligned, Pooled, StepRewards} {
			o := DefaultOptions()
			o.Mode = mode
			single := groups(1, 1).Draw(t, "single")
			kind := single[0].Kinds[0]
			for i := range single { // aligned compares like with like: one kind for all
				single[i].Kinds[0] = kind
			}
			check(o, single)
		}
	})
}

func TestReturns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultOptions()
		o.Gamma = rapid.Float64Range(0, 1).Draw(t, "gamma")
		group := groups(1, 6).Draw(t, "group")
		for _, s := range group {
			rewards := o.Rewards(s)
			returns := o.Returns(rewards)
			for k := range returns {
				next := 0.0
				if k+1 < len(returns) {
					next = returns[k+1]
				}
				if !near(returns[k], rewards[k]+o.Gamma*next) {
					t.Fatalf("G_%d = %g, want r + gamma G_%d = %g", k, returns[k], k+1, rewards[k]+o.Gamma*next)
				}
				// Of a flat query, what is left from a clause on is its return.
				if rest := o.rest(s, rewards, s.Kinds[k]); !near(rest, returns[k]) {
					t.Fatalf("rest from %s on: %g, want G_%d = %g", s.Kinds[k], rest, k, returns[k])
				}
			}
			// The execution reward occurs once.
			wrong, right := s, s
			wrong.Correct, right.Correct = false, true
			difference := 0.0
			a, b := o.Rewards(right), o.Rewards(wrong)
			for k := range a {
				difference += a[k] - b[k]
			}
			if !near(difference, o.Execution) {
				t.Fatalf("a right result adds %g, want %g", difference, o.Execution)
			}
		}
	})
}

// Execution stays the final objective: a right query's whole return is above any wrong
// one's, whatever the clauses are scored.
func TestRightAboveWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultOptions()
		group := groups(1, 8).Draw(t, "group")
		least, most := math.Inf(1), math.Inf(-1)
		for _, s := range group {
			g := o.Returns(o.Rewards(s))[0]
			if s.Correct {
				least = min(least, g)
			} else {
				most = max(most, g)
			}
		}
		if least <= most {
			t.Fatalf("a right query has %g, a wrong one %g", least, most)
		}
	})
}

// A clause that only the right queries have earns credit: siblings that lack it count
// with what they have left.
func TestMissingClauseIsCompared(t *testing.T) {
	short := []sql.ClauseKind{sql.ClauseSelect, sql.ClauseFrom}
	long := []sql.ClauseKind{sql.ClauseSelect, sql.ClauseFrom, sql.ClauseHaving}
	group := []Sample{
		{Kinds: long, Scores: []float64{0.5, 0.5, 0.5}, Correct: true},
		{Kinds: short, Scores: []float64{0.5, 0.5}},
		{Kinds: short, Scores: []float64{0.5, 0.5}},
	}
	got, err := DefaultOptions().Advantages(group)
	if err != nil {
		t.Fatal(err)
	}
	if got[0][2] <= 1 {
		t.Errorf("advantage of HAVING %g: the two that lack it earned nothing from there on", got[0][2])
	}
}

func TestGroupsWithoutSignal(t *testing.T) {
	kinds := []sql.ClauseKind{sql.ClauseSelect}
	wrong := Sample{Kinds: kinds, Scores: []float64{0.25}}
	longer := Sample{Kinds: []sql.ClauseKind{sql.ClauseSelect, sql.ClauseFrom}, Scores: []float64{0.25, 0.25}}
	better := Sample{Kinds: kinds, Scores: []float64{0.5}}
	sparse := DefaultOptions()
	sparse.Clauses = 0
	for _, c := range []struct {
		o     Options
		group []Sample
		want  bool
	}{
		{DefaultOptions(), nil, false}, {DefaultOptions(), []Sample{wrong, longer}, false}, {DefaultOptions(), []Sample{wrong, better}, true}, {sparse, []Sample{wrong, better}, false},
	} {
		if got, err := c.o.Advantages(c.group); err != nil || (got != nil) != c.want {
			t.Errorf("%+v: %v, %v; want a signal: %v", c.group, got, err, c.want)
		}
	}
	for _, bad := range []Sample{{}, {Kinds: kinds}, {Kinds: kinds, Scores: []float64{math.NaN()}}, {Kinds: kinds, Scores: []float64{1.5}}} {
		if _, err := DefaultOptions().Advantages([]Sample{wrong, bad}); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
