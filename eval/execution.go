package eval

import (
	"context"
	"errors"
	"iter"
	"maps"

	"caper/data"
	"caper/sqlexec"
)

// Verdict says whether a candidate query gave the gold result.
type Verdict string

const (
	Correct     Verdict = "correct"
	Wrong       Verdict = "wrong"        // it ran, with another result
	Failed      Verdict = "error"        // it did not run
	TimedOut    Verdict = "timeout"      // it ran out of time
	GoldFailed  Verdict = "gold_error"   // the gold query did not run
	GoldTimeout Verdict = "gold_timeout" // the gold query ran out of time
)

// Judged is a candidate with its verdict.
type Judged struct {
	data.Rollout
	Verdict Verdict
	// Message says what went wrong, for every verdict but Correct and Wrong.
	Message string
	// Strict is the verdict under the strict rule, which forgives nothing.
	Strict Verdict
}

// Line returns the candidate with the verdict among its extra fields, as the
// verdicts file holds it.
func (j Judged) Line() data.Rollout {
	r := j.Rollout
	r.Extra = maps.Clone(r.Extra)
	if r.Extra == nil {
		r.Extra = data.Extra{}
	}
	for field, value := range map[string]string{
		"verdict": string(j.Verdict), "message": j.Message, "strict_verdict": string(j.Strict),
	} {
		text, _ := data.Marshal(value) // a string always marshals
		r.Extra[field] = text
	}
	return r
}

// Databases opens databases by name; data.Benchmark is one.
type Databases interface {
	Database(dbID string) (*sqlexec.Database, error)
}

// ExecutionOptions say how Execute judges.
type ExecutionOptions struct {
	Rule    sqlexec.Rule
	Workers int // at least 1
	// Cache holds results between queries, nil for a new one.
	Cache *sqlexec.Cache
}

// cacheBytes is the size of the cache that Execute makes for itself.
const cacheBytes = 256 << 20

// Execute judges candidates and hands them to emit in their order, whatever the
// number of workers. It holds only a few candidates at a time. It stops at the
// first error of the candidates, of emit or of the context; that a query fails is
// a verdict and no error.
func Execute(ctx context.Context, databases Databases, rollouts iter.Seq2[data.Rollout, error], o ExecutionOptions,
	emit func(Judged) error) error {
	j := judge{databases: databases, rule: o.Rule, cache: o.Cache}
	if j.cache == nil {
		j.cache = sqlexec.NewCache(cacheBytes)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pending := j.start(ctx, rollouts, max(o.Workers, 1))
	for slot := range pending {
		r := <-slot
		if r.err == nil {
			r.err = emit(r.Judged)
		}
		if r.err != nil {
			cancel()
			for slot := range pending { // leave nothing running behind
				<-slot
			}
			return r.err
		}
	}
	return ctx.Err()
}

// judge gives verdicts.
type judge struct {
	databases Databases
	rule      sqlexec.Rule
	cache     *sqlexec.Cache
}

// result is a judged candidate, or the error that ends the run.
type result struct {
	Judged
	err error
}

// start judges in the background. It returns one channel for each candidate, in
// order, on which the result will be; there are never many more than workers.
func (j *judge) start(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], workers int) <-chan chan result {
	pending := make(chan chan result, 4*workers)
	free := make(chan struct{}, workers)
	go func() {
		defer close(pending)
		for r, err := range rollouts {
			if ctx.Err() != nil {
				return
			}
			slot := make(chan result, 1)
			pending <- slot
			if err != nil {
				slot <- result{err: err}
				return
			}
			free <- struct{}{}
			go func() {
				defer func() { <-free }()
				judged, err := j.judge(ctx, r)
				slot <- result{judged, err}
			}()
		}
	}()
	return pending
}

// judge judges one candidate. Its error is that of the context, or of a missing or
// broken database.
func (j *judge) judge(ctx context.Context, r data.Rollout) (Judged, error) {
	out := Judged{Rollout: r}
	db, err := j.databases.Database(r.DBID)
	if err != nil {
		return out, err
	}
	out.Verdict, out.Message, err = j.verdict(ctx, db, j.rule, r)
	if err != nil {
		return out, err
	}
	out.Strict = out.Verdict
	if j.rule != sqlexec.Strict {
		out.Strict, _, err = j.verdict(ctx, db, sqlexec.Strict, r)
	}
	return out, err
}

// verdict judges under one rule.
func (j *judge) verdict(ctx context.Context, db *sqlexec.Database, rule sqlexec.Rule, r data.Rollout) (Verdict, string, error) {
	gold, err := j.cache.Query(ctx, db, rule.Rewrite(r.Gold))
	if err != nil {
		return failure(err, GoldFailed, GoldTimeout)
	}
	got, err := j.cache.Query(ctx, db, rule.Rewrite(r.SQL))
	if err != nil {
		return failure(err, Failed, TimedOut)
	}
	if rule.Same(gold, got, r.Gold) {
		return Correct, "", nil
	}
	return Wrong, "", nil
}

// failure turns a query's error into a verdict. An error that no query caused is
// passed on.
func failure(err error, failed, timedOut Verdict) (Verdict, string, error) {
	var e *sqlexec.Error
	if !errors.As(err, &e) {
		return "", "", err
	}
	if e.Failure == sqlexec.Timeout {
		return timedOut, e.Message, nil
	}
	return failed, e.Error(), nil
}

// ExecutionSummary counts verdicts.
type ExecutionSummary struct {
	// Accuracy is the share of correct ones among all (EX).
	Accuracy float64         `json:"ex"`
	Count    int             `json:"count"`
	Verdicts map[Verdict]int `json:"verdicts"`
	// Disagree counts the verdicts that the strict rule does not share.
	Disagree int `json:"strict_disagrees"`
}

// Add counts one more candidate.
func (s *ExecutionSummary) Add(j Judged) {
	if s.Verdicts == nil {
		s.Verdicts = map[Verdict]int{}
	}
	s.Count++
	s.Verdicts[j.Verdict]++
	if j.Strict != j.Verdict {
		s.Disagree++
	}
	s.Accuracy = float64(s.Verdicts[Correct]) / float64(s.Count)
}
