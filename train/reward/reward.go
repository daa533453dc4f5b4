// Package reward judges sampled queries: by execution, and clause by clause by a reward
// model. What it finds becomes policy.Samples, whose rewards and advantages are those of
// caper.md 1.4.8.
//
//	reward.go   the kinds of reward, and what is known of a sampled answer
//	execute.go  outcomes of a group, by execution
//	score.go    probabilities of the clauses, or of every token, of a group in one packed tree
//	watch.go    whether the reward model still says what execution says
package reward

import (
	"fmt"
	"slices"
	"sort"

	"caper/eval"
	"caper/sql"
	"caper/train/policy"
)

// Kind is what a sample is rewarded for.
type Kind string

const (
	// Clause gives every clause its share of what the Clause-PRM thinks of it, and the
	// last one the execution reward (caper.md 1.4.8).
	Clause Kind = "clause"
	// Token spreads the PRM's opinion over tokens: each is rewarded with what it adds to
	// the score of the text before it, divided by the length.
	Token Kind = "token"
	// Sparse is the execution reward alone.
	Sparse Kind = "sparse"
	// Arctic is 1 for a right result, 0.1 for any result, 0 for none
	// (Arctic-Text2SQL-R1, arXiv 2505.20315).
	Arctic Kind = "arctic"
)

// Kinds are all, the default first.
var Kinds = []Kind{Clause, Token, Sparse, Arctic}

// executable is what Arctic gives a query that runs, with another result than gold.
const executable = 0.1

// Policy returns the options under which samples of this kind are rewarded, given those
// of Clause.
func (k Kind) Policy(o policy.Options) policy.Options {
	switch k {
	case Sparse:
		o.Clauses = 0
	case Arctic:
		o.Clauses = executable
	}
	return o
}

// NeedsScores reports whether the kind needs a reward model.
func (k Kind) NeedsScores() bool { return k == Clause || k == Token }

// Answer is one sampled text and what is known of it.
type Answer struct {
	Text string
	// Ends are the bytes of Text at which the policy's tokens end. The end token's is
	// len(Text), as the last text token's is.
	Ends []int

	// Query is the query in Text, at byte Start; "" where there is none.
	Query string
	Start int
	// Clauses are those of Query, as spans of Text.
	Clauses []sql.Clause

	// Verdict is the outcome, Message says what went wrong. Text that is not one SELECT
	// statement is not run and failed.
	Verdict eval.Verdict
	Message string

	// Scores are the probabilities of the clauses, nil without a reward model. Prefixes
	// are those of the text up to the end of each token, of Token alone.
	Scores, Prefixes []float64

	// Missing says why there is no reward, "" where there is one. Such a sample takes no
	// part in its group.
	Missing string
}

// Correct is e of caper.md 1.4.8.
func (a *Answer) Correct() bool { return a.Verdict == eval.Correct }

// Sample returns the answer's rewards as steps, and the step that each token belongs to.
// The steps are its clauses; of Token, its tokens; of Arctic, or of a text that is no
// query, there is one.
func (k Kind) Sample(a *Answer) (s policy.Sample, steps []int) {
	s.Correct = a.Correct()
	steps = make([]int, len(a.Ends))
	switch {
	case a.Query == "":
		s.Kinds, s.Scores = []sql.ClauseKind{sql.ClauseSelect}, []float64{0}
	case k == Arctic:
		s.Kinds, s.Scores = []sql.ClauseKind{a.Clauses[0].Kind}, []float64{0}
		if a.Verdict == eval.Wrong {
			s.Scores[0] = 1
		}
	case k == Token:
		before := 0.0
		for t, p := range a.Prefixes {
			s.Kinds = append(s.Kinds, a.Clauses[a.clauseOf(t)].Kind)
			s.Scores = append(s.Scores, p-before)
			before, steps[t] = p, t
		}
	default:
		s.Scores = slices.Clone(a.Scores)
		if s.Scores == nil { // no reward model
			s.Scores = make([]float64, len(a.Clauses))
		}
		for _, c := range a.Clauses {
			s.Kinds = append(s.Kinds, c.Kind)
		}
		for t := range steps {
			steps[t] = a.clauseOf(t)
		}
	}
	return s, steps
}

// clauseOf is the clause that token t belongs to: that in which its first byte lies. What
// is ahead of the query belongs to its first clause, what is behind it to the last.
func (a *Answer) clauseOf(t int) int {
	first := 0
	if t > 0 {
		first = a.Ends[t-1]
	}
	after := sort.Search(len(a.Clauses), func(k int) bool { return a.Clauses[k].Start > first })
	return max(after-1, 0)
}

// Parse reads the name of a kind.
func Parse(name string) (Kind, error) {
	if k := Kind(name); slices.Contains(Kinds, k) {
		return k, nil
	}
	return "", fmt.Errorf("reward %q: want one of %q", name, Kinds)
}
