package eval

import (
	"strings"

	"caper/sql"
)

// Baseline is a simple rule that ranks a fault's candidates. Like a model it
// gives each candidate a score, and the lowest is the most suspect.
type Baseline struct {
	Name  string
	Score func(f *Fault) []float64
}

// The baselines of FitBaselines, in its order.
const (
	Random   = "random"   // no preference
	First    = "first"    // clauses in their order
	Longest  = "longest"  // long clauses before short ones
	Frequent = "frequent" // kinds that were often at fault in training before others
	Lexical  = "lexical"  // share of words not in the question, times the kind's rate of faults
	Logistic = "logistic" // conditional logistic regression on hashed word pairs
)

// FitBaselines returns the baselines, fitted on the faults of training data and
// on nothing else. Without training data the last three prefer nothing.
func FitBaselines(training []Fault) []Baseline {
	kinds := countKinds(training)
	logistic := fitLogistic(training)
	return []Baseline{
		{Random, each(func(*Fault, int) float64 { return 0 })},
		{First, each(func(_ *Fault, i int) float64 { return float64(i) })},
		{Longest, each(func(f *Fault, i int) float64 { return -float64(len(strings.TrimSpace(f.Units[i]))) })},
		{Frequent, each(func(f *Fault, i int) float64 { return -float64(kinds[f.Kinds[i]].faulty) })},
		{Lexical, kinds.lexical},
		{Logistic, logistic.score},
	}
}

// each makes a Score of a function of one candidate.
func each(score func(f *Fault, candidate int) float64) func(*Fault) []float64 {
	return func(f *Fault) []float64 {
		scores := make([]float64, len(f.Units))
		for i := range scores {
			scores[i] = score(f, i)
		}
		return scores
	}
}

// kindCounts says of each kind how many candidates there were, and how many of
// them were at fault.
type kindCounts map[sql.ClauseKind]struct{ candidates, faulty int }

func countKinds(faults []Fault) kindCounts {
	counts := kindCounts{}
	for i := range faults {
		f := &faults[i]
		for j, kind := range f.Kinds {
			c := counts[kind]
			c.candidates++
			if j == f.Faulty {
				c.faulty++
			}
			counts[kind] = c
		}
	}
	return counts
}

// rate returns the share of candidates of a kind that were at fault.
func (k kindCounts) rate(kind sql.ClauseKind) float64 {
	c := k[kind]
	if c.candidates == 0 {
		return 0
	}
	return float64(c.faulty) / float64(c.candidates)
}

// lexical scores by the share of words that are not in the question, times the
// kind's rate; the end of the query, which has no words, by its rate alone.
func (k kindCounts) lexical(f *Fault) []float64 {
	question := wordSet(f.Wording)
	scores := make([]float64, len(f.Units))
	for i, unit := range f.Units {
		share := 1.0
		if f.Kinds[i] != sql.ClauseEnd {
			share = missShare(unit, question)
		}
		scores[i] = -share * k.rate(f.Kinds[i])
	}
	return scores
}
