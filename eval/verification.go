package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"caper/data"
	"caper/model"
	"caper/sqlexec"
)

// Pool holds the candidates for one question in the order of their samples, with the
// model input before each of them.
type Pool struct {
	Prompt     string
	Candidates []data.Rollout
}

// VerificationOptions say how Verify judges and scores.
type VerificationOptions struct {
	ExecutionOptions
	// Aggregate makes a query's score of its clauses'.
	Aggregate Aggregate
	// Resamples is the number of bootstrap resamples, Seed theirs.
	Resamples int
	Seed      uint64
	// Each, if not nil, is told of every question that counts, in their order: how its
	// first candidate turned out, and the choice of the majority.
	Each func(first, majority Outcome)
}

// Verification is how well each way of choosing one of a question's candidates does
// (caper.md 1.4.10).
type Verification struct {
	Questions  int `json:"questions"`
	Candidates int `json:"candidates"`
	// First takes each question's first sample, Majority the largest group of equal
	// results, PRM the candidate with the best score S, PRMVote the group whose
	// members' exp(S) sum to most and its best member. Oracle is right where any
	// candidate is.
	First    Choice `json:"ex_at_1"`
	Majority Choice `json:"mv"`
	PRM      Choice `json:"prm"`
	PRMVote  Choice `json:"prm_vote"`
	Oracle   Choice `json:"oracle"`
	// GoldProblems counts questions left out: their gold did not run.
	GoldProblems int `json:"gold_problems"`
}

// Choice is the execution accuracy of one way to choose, beside majority vote's on the
// same questions.
type Choice struct {
	Correct  int      `json:"correct"`
	Accuracy float64  `json:"ex"`
	Interval Interval `json:"interval"`
	// Only this way right, and only the vote, with McNemar's exact two-sided p.
	OnlyThis int     `json:"only_this"`
	OnlyVote int     `json:"only_mv"`
	P        float64 `json:"p_against_mv"`
}

// drawn is a candidate with what came of it.
type drawn struct {
	right bool
	ran   bool
	score float64
	group int // of equal results, numbered by their first member; -1 for one that failed
}

// Verify executes all candidates, once each, scores them, and judges every way to choose.
// Grouping and judging share executions and the comparison rule. scorer may be nil:
// then all scores are 0, and the two that use them choose by votes and order alone.
func Verify(ctx context.Context, databases Databases, pools []Pool, scorer Scorer, o VerificationOptions) (Verification, error) {
	if o.Cache == nil {
		o.Cache = sqlexec.NewCache(cacheBytes)
	}
	v := Verification{}
	s := newSampler(5, 1)
	j := newJudge(databases, o.ExecutionOptions, o.Evaluator())
	err := InOrder(ctx, Each(pools), o.Workers, j.pool, func(p judgedPool) error {
		if p.goldProblem || len(p.candidates) == 0 {
			v.GoldProblems++
			return nil
		}
		if scorer != nil {
			scoreCandidates(scorer, p, o.Aggregate)
		}
		v.Questions++
		v.Candidates += len(p.candidates)
		question := p.Candidates[0].DBID + "\x00" + p.Candidates[0].QuestionID.String()
		values := v.add(p.candidates)
		s.add(question, 0, values)
		if o.Each != nil {
			o.Each(Outcome{Question: question, Value: values[0]}, Outcome{Question: question, Value: values[1]})
		}
		return nil
	})
	if err != nil {
		return v, err
	}
	replicates := s.resample(o.Resamples, o.Seed)
	for i, c := range v.choices() {
		c.Accuracy, c.P = share(c.Correct, v.Questions), mcNemar(c.OnlyThis, c.OnlyVote)
		if v.Questions > 0 {
			c.Interval = interval(replicates[i])
		}
	}
	return v, nil
}

func (v *Verification) choices() []*Choice {
	return []*Choice{&v.First, &v.Majority, &v.PRM, &v.PRMVote, &v.Oracle}
}

// add counts a question and returns which ways got it right, 1 or 0.
func (v *Verification) add(candidates []drawn) []float64 {
	vote := candidates[majority(candidates)].right
	values := make([]float64, 5)
	for i, right := range []bool{
		candidates[0].right, vote, candidates[best(candidates, eligible(candidates))].right, candidates[scoredVote(candidates)].right,
		slices.ContainsFunc(candidates, func(c drawn) bool { return c.right }),
	} {
		c := v.choices()[i]
		if right {
			c.Correct++
			values[i] = 1
		}
		switch {
		case right && !vote:
			c.OnlyThis++
		case vote && !right:
			c.OnlyVote++
		}
	}
	return values
}

// majority is the first member of the largest group, of equal ones the group that was
// seen first; the first candidate where all failed.
func majority(candidates []drawn) int {
	sizes := map[int]int{}
	for _, c := range candidates {
		if c.ran {
			sizes[c.group]++
		}
	}
	chosen := 0
	for g := range candidates { // groups are numbered by their first member
		if sizes[g] > sizes[chosen] {
			chosen = g
		}
	}
	return chosen
}

// eligible lists the candidates that may be chosen: those that ran, if any did.
func eligible(candidates []drawn) []int {
	var ran, all []int
	for i, c := range candidates {
		all = append(all, i)
		if c.ran {
			ran = append(ran, i)
		}
	}
	if len(ran) > 0 {
		return ran
	}
	return all
}

// best is the one of them with the highest score, of equal ones the first.
func best(candidates []drawn, of []int) int {
	chosen := of[0]
	for _, i := range of {
		if candidates[i].score > candidates[chosen].score {
			chosen = i
		}
	}
	return chosen
}

// scoredVote is the best member of the group whose members' exp(S) sum to most.
func scoredVote(candidates []drawn) int {
	groups := map[int][]int{}
	sums := map[int]float64{}
	for i, c := range candidates {
		if c.ran {
			groups[c.group] = append(groups[c.group], i)
			sums[c.group] += math.Exp(c.score)
		}
	}
	if len(groups) == 0 {
		return best(candidates, eligible(candidates))
	}
	chosen := -1
	for g := range candidates {
		if groups[g] != nil && (chosen < 0 || sums[g] > sums[chosen]) {
			chosen = g
		}
	}
	return best(candidates, groups[chosen])
}

// scoreCandidates gives each candidate its score.
func scoreCandidates(scorer Scorer, p judgedPool, by Aggregate) {
	var queries []string
	for _, r := range p.Candidates {
		queries = append(queries, r.SQL)
	}
	for i, scores := range scorer.Score([]model.Request{ScoreRequest(p.Prompt, queries)})[0] {
		p.candidates[i].score = QueryScore(scores, by)
	}
}

// judgedPool is a pool whose candidates were executed.
type judgedPool struct {
	Pool
	candidates  []drawn
	goldProblem bool
}

// pool judges the candidates of a question and groups them by their results.
func (j *judge) pool(ctx context.Context, p Pool) (out judgedPool, err error) {
	out.Pool = p
	records := make([]sqlexec.Record, len(p.Candidates))
	for i, r := range p.Candidates {
		judged, err := j.judge(ctx, r)
		if err != nil {
			return out, fmt.Errorf("question %s: %w", r.QuestionID, err)
		}
		if !judged.Verdict.isJudgement() {
			out.goldProblem = true
			return out, nil
		}
		c := drawn{right: judged.Verdict == Correct, group: -1}
		if judged.Verdict == Correct || judged.Verdict == Wrong {
			if records[i], err = j.record(ctx, r); err != nil && ctx.Err() != nil {
				return out, err
			}
			c.ran = err == nil
		}
		if c.ran {
			c.group = j.groupOf(out.candidates, records, p, i)
		}
		out.candidates = append(out.candidates, c)
	}
	return out, nil
}

// record is the result of a candidate on its own database; it was executed before, so it
// comes out of the cache.
func (j *judge) record(ctx context.Context, r data.Rollout) (sqlexec.Record, error) {
	db, err := j.databases.Database(r.DBID)
	if err != nil {
		return nil, err
	}
	return j.cache.Record(ctx, db, j.quirks.Rewrite(r.SQL))
}

// groupOf is the group of candidate i: that of the first one before it with an equal
// result, else its own.
func (j *judge) groupOf(before []drawn, records []sqlexec.Record, p Pool, i int) int {
	for g, c := range before {
		if c.group == g && j.quirks.SameRecords(records[g], records[i], p.Candidates[g].SQL) {
			return g
		}
	}
	return i
}
