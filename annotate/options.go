package annotate

import (
	"fmt"
	"runtime"
)

// Granularity says which clauses are units that can carry a reward of their own
// (caper.md 1.4.1).
type Granularity string

const (
	// Top knows the clauses of the outermost statement only; a sub-query belongs
	// to the clause that holds it. Every margin is alpha.
	Top Granularity = "top"
	// Nested gives every SELECT block its own clauses. A fault in a sub-query
	// yields a tuple for the inner clause and, with a decayed margin, one for
	// each clause around it. Flat queries give the same tuples as Top.
	Nested Granularity = "nested"
	// Predicate cuts the clauses of Nested further: each projected item, joined
	// source, conjunct and key of a clause that has several is a unit, too
	// (sql.Predicates). A fault inside one yields a tuple for the part and, with a
	// decayed margin, one for its clause; a fault of the clause itself (a part
	// missing, AND for OR) one for the clause.
	Predicate Granularity = "predicate"
)

// Options are the constants of annotation. DefaultOptions gives each the value
// of caper.md 1.4.3-1.4.6.
type Options struct {
	// Injection and Counterfactual switch the two sources of tuples: mutants of
	// correct rollouts and repairs of failing ones.
	Injection, Counterfactual bool

	// Granularity is Nested by default: of the three ways to a continuous margin
	// that caper.md 1.3 names it is (a); DependencyEdges is (b), and (c), severity, is
	// training's, since it is relative to all tuples that are trained on.
	Granularity Granularity
	// Propagation carries the penalty of v* to the clauses around it. Without it
	// only the clause that holds v* yields a tuple and every margin is Alpha.
	Propagation bool
	// DependencyEdges adds edges from a column to the FROM item that binds it and
	// from an ORDER BY or HAVING expression to the projection or GROUP BY key it
	// repeats (caper.md 1.4.5). It can shorten the way to an enclosing clause and
	// so raise its margin. It makes no tuples of its own: a clause that is only
	// depended upon reads the same in both queries.
	DependencyEdges bool

	// Alpha is the penalty of v* and Sigma, in edges, the width of its Gaussian
	// decay (caper.md 1.4.5).
	Alpha, Sigma float64
	// MinReward: a clause reward smaller than this is taken as 0.
	MinReward float64

	// Inject is M, the most accepted mutants of one rollout, and PerClause the
	// most that change one clause, or that add something.
	Inject, PerClause int
	// Attempts bounds the mutants of one rollout that are executed.
	Attempts int
	// AllowErrorShare is the share of the mutants that raise an error which is
	// accepted; the others are rejected (caper.md 1.4.3: at most 0.1).
	AllowErrorShare float64

	// Seed keys the draw of mutants together with the rollout's content.
	Seed uint64
	// Workers is the number of rollouts annotated at a time. The output does not
	// depend on it.
	Workers int
	// CacheBytes bounds the results kept for reuse.
	CacheBytes int
	// Split names the split of a database; nil puts every tuple in "train".
	Split func(dbID string) string
}

// DefaultOptions returns the defaults of caper.md 1.4.
func DefaultOptions() Options {
	return Options{
		Injection:      true,
		Counterfactual: true,
		Granularity:    Nested,
		Propagation:    true,
		Alpha:          1,
		Sigma:          2,
		MinReward:      0.05,
		Inject:         4,
		PerClause:      2,
		Attempts:       24,
		Workers:        runtime.GOMAXPROCS(0),
		CacheBytes:     128 << 20,
	}
}

// check reports the first option that is out of range.
func (o Options) check() error {
	switch {
	case o.Granularity != Top && o.Granularity != Nested && o.Granularity != Predicate:
		return fmt.Errorf("annotate: granularity is %q; use %q, %q or %q", o.Granularity, Top, Nested, Predicate)
	case !(o.Alpha > 0):
		return fmt.Errorf("annotate: alpha is %v; it must be positive", o.Alpha)
	case !(o.Sigma > 0):
		return fmt.Errorf("annotate: sigma is %v; it must be positive", o.Sigma)
	case !(o.MinReward >= 0 && o.MinReward < o.Alpha):
		return fmt.Errorf("annotate: min reward is %v; it must lie in [0, alpha)", o.MinReward)
	case o.Inject < 0 || o.PerClause < 1 || o.Attempts < 1:
		return fmt.Errorf("annotate: inject %d, per clause %d, attempts %d; they must be at least 0, 1 and 1",
			o.Inject, o.PerClause, o.Attempts)
	case !(o.AllowErrorShare >= 0 && o.AllowErrorShare <= 1):
		return fmt.Errorf("annotate: share of erroring mutants is %v; it must lie in [0, 1]", o.AllowErrorShare)
	case o.Workers < 1:
		return fmt.Errorf("annotate: %d workers; at least one is needed", o.Workers)
	}
	return nil
}

// splitOf names the split of a database.
func (o Options) splitOf(dbID string) string {
	if o.Split == nil {
		return "train"
	}
	return o.Split(dbID)
}
