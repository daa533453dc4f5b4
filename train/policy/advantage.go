// Package policy turns the outcomes of a group of sampled queries into the advantages
// that a policy is trained with (caper.md 1.4.8).
package policy

import (
	"fmt"
	"math"
	"slices"

	"caper/sql"
)

// Sample is what became of one sampled query of a group.
type Sample struct {
	// Kinds are the kinds of its clauses in the order of the text, Scores what the
	// Clause-PRM gives each as a probability, in [0, 1]. A text that is no query has
	// one clause of score 0. Where tokens are rewarded, they stand for clauses, and
	// each one's score is the difference that it makes to the probability, in [-1, 1].
	Kinds  []sql.ClauseKind
	Scores []float64
	// Correct says that its result is gold's.
	Correct bool
	// Penalty is added to the outcome's reward: 0, or less for a text that is too long.
	Penalty float64
}

// Mode is how returns become advantages.
type Mode string

const (
	// Aligned compares the rest of a query with the rest of every other sample from
	// the same place in the canonical order of clauses on, whether or not that sample
	// has the clause.
	Aligned Mode = "aligned"
	// Pooled takes mean and deviation over all returns of the group.
	Pooled Mode = "pooled"
	// StepRewards normalises rewards, not returns, over the group and sums them up to
	// the end (DeepSeekMath, arXiv 2402.03300, 4.1.3).
	StepRewards Mode = "deepseek"
)

// Options are the constants of reward and advantage.
type Options struct {
	// Execution is lambda_e, the reward of a right result; Clauses lambda_c, the most
	// that all clauses of a query bring together; Gamma discounts from clause to clause.
	Execution, Clauses, Gamma float64
	Mode                      Mode
}

// DefaultOptions returns those of caper.md 1.4.8.
func DefaultOptions() Options { return Options{Execution: 1, Clauses: 0.5, Gamma: 1, Mode: Aligned} }

// epsilon keeps a group of equal returns from dividing by zero.
const epsilon = 1e-6

// Rewards returns r_k, the reward of each clause: its share of lambda_c and, at the last
// one, lambda_e for a right result and the penalty, which so occur once.
func (o Options) Rewards(s Sample) []float64 {
	rewards := make([]float64, len(s.Scores))
	for k, p := range s.Scores {
		rewards[k] = o.Clauses / float64(len(s.Scores)) * p
	}
	rewards[len(rewards)-1] += o.outcome(s)
	return rewards
}

// outcome is the reward of the whole text.
func (o Options) outcome(s Sample) float64 {
	if s.Correct {
		return o.Execution + s.Penalty
	}
	return s.Penalty
}

// Returns turns rewards into returns-to-go: G_k = r_k + gamma G_{k+1}.
func (o Options) Returns(rewards []float64) []float64 {
	returns := slices.Clone(rewards)
	for k := len(returns) - 2; k >= 0; k-- {
		returns[k] += o.Gamma * returns[k+1]
	}
	return returns
}

// Advantages returns the advantage of every clause of every sample, which all tokens of
// the clause share. It returns nil for a group without a signal, in which all have one
// outcome and all scores are equal. Samples without clauses, with more or fewer
// kinds than scores, or with scores beyond [-1, 1] are errors: a missing reward must not
// pass for a bad one.
func (o Options) Advantages(group []Sample) ([][]float64, error) {
	var rewards, returns [][]float64
	for i, s := range group {
		if len(s.Scores) == 0 || len(s.Kinds) != len(s.Scores) {
			return nil, fmt.Errorf("sample %d: %d scores for %d clauses: every sample needs a score for each of its clauses, and one clause at least", i, len(s.Scores), len(s.Kinds))
		}
		for k, p := range s.Scores {
			if !(p >= -1 && p <= 1) {
				return nil, fmt.Errorf("sample %d: score %g of clause %d: must lie in [-1, 1]", i, p, k)
			}
		}
		rewards = append(rewards, o.Rewards(s))
		returns = append(returns, o.Returns(rewards[i]))
	}
	if len(group) == 0 || !o.signal(group) {
		return nil, nil
	}
	switch o.Mode {
	case Pooled:
		return normalised(returns), nil
	case StepRewards:
		sums := normalised(rewards)
		for _, s := range sums {
			for k := len(s) - 2; k >= 0; k-- {
				s[k] += s[k+1]
			}
		}
		return sums, nil
	case Aligned:
		return o.aligned(group, rewards, returns), nil
	}
	return nil, fmt.Errorf("advantage mode %q: want %s, %s or %s", o.Mode, Aligned, Pooled, StepRewards)
}

// aligned is
//
//	A_k = (G_k - mean over the group of G[kind_k]) / (deviation of G_1 + epsilon)
//
// where G[kind] is the return of a sample from the first clause at or behind kind in
// canonical order on. The outcome's reward belongs to every such rest.
func (o Options) aligned(group []Sample, rewards, returns [][]float64) [][]float64 {
	var whole []float64
	for _, r := range returns {
		whole = append(whole, r[0])
	}
	_, deviation := moments(whole)
	means := map[sql.ClauseKind]float64{}
	mean := func(kind sql.ClauseKind) float64 {
		m, known := means[kind]
		if !known {
			for i, s := range group {
				m += o.rest(s, rewards[i], kind) / float64(len(group))
			}
			means[kind] = m
		}
		return m
	}
	all := make([][]float64, len(group))
	for i, s := range group {
		for k, kind := range s.Kinds {
			all[i] = append(all[i], (returns[i][k]-mean(kind))/(deviation+epsilon))
		}
	}
	return all
}

// rest is G[kind] of a sample.
func (o Options) rest(s Sample, rewards []float64, kind sql.ClauseKind) float64 {
	total, discount, last := 0.0, 1.0, len(rewards)-1
	for k, r := range rewards {
		if k == last {
			r -= o.outcome(s)
		}
		if place(s.Kinds[k]) >= place(kind) {
			total += discount * r
			if k < last {
				discount *= o.Gamma
			}
		}
	}
	return total + discount*o.outcome(s)
}

// canonical is the order in which clauses stand.
var canonical = []sql.ClauseKind{sql.ClauseWith, sql.ClauseSelect, sql.ClauseFrom, sql.ClauseWhere, sql.ClauseGroupBy, sql.ClauseHaving,
	sql.ClauseWindow, sql.ClauseSetOp, sql.ClauseOrderBy, sql.ClauseLimit}

func place(kind sql.ClauseKind) int { return slices.Index(canonical, kind) }

// signal reports whether the samples of a group differ in what they are rewarded for.
func (o Options) signal(group []Sample) bool {
	first := group[0]
	return slices.ContainsFunc(group, func(s Sample) bool {
		return o.outcome(s) != o.outcome(first) ||
			o.Clauses != 0 && slices.ContainsFunc(s.Scores, func(p float64) bool { return p != first.Scores[0] })
	})
}

// normalised takes the mean of all values off each and divides by their deviation.
func normalised(values [][]float64) [][]float64 {
	mean, deviation := moments(slices.Concat(values...))
	all := make([][]float64, len(values))
	for i, row := range values {
		for _, v := range row {
			all[i] = append(all[i], (v-mean)/(deviation+epsilon))
		}
	}
	return all
}

// moments returns the mean and the population's standard deviation.
func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(deviation)
}
