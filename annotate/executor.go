package annotate

import (
	"context"
	"errors"
	"sync"
	"time"

	"caper/sql"
	"caper/sqlexec"
)

// executor runs queries on one database and judges them against one gold query
// by the benchmark's comparison rule.
type executor struct {
	database *sqlexec.Database
	// candidates is the same under the limits of what may be as good as gold, mutants
	// under those of mutants.
	candidates, mutants *sqlexec.Database
	cache               *sqlexec.Cache
	domains             *domains
	rule                sqlexec.Rule
	gold                executed
	// isSlow says that the candidate is, and so what is made of it.
	isSlow bool
	// runs counts the queries asked for, cached or not.
	runs int
}

// executed is a query with its result.
type executed struct {
	text string
	// ran is what the rule runs in the place of text.
	ran    string
	result sqlexec.Record
}

// mutantInstructions bounds a mutant: some 0.4 seconds on a machine of 2026. A mutant
// that takes as long as a query may is of no use, and what is kept must not depend on
// how fast the machine is.
const mutantInstructions = 50_000_000

// newExecutor runs gold and prepares to judge queries against it. A candidate with
// more rows than gold is wrong whatever follows, unless the rule looks at sets.
func (a *annotator) newExecutor(ctx context.Context, database *sqlexec.Database, gold string) (*executor, error) {
	e := &executor{database: database, cache: a.cache, domains: &a.domains, rule: a.bench.Rule()}
	var err error
	if e.gold, err = e.execute(ctx, database, gold); err != nil {
		return nil, err
	}
	short, bounded := database.Limits(), database.Limits()
	if e.rule.CountsRows() {
		short.Rows = min(short.Rows, e.gold.result.Rows()+1)
	}
	bounded.Instructions = mutantInstructions
	if e.candidates, err = database.Within(short); err != nil {
		return nil, err
	}
	e.mutants, err = database.Within(bounded)
	return e, err
}

// keepsRows reports that the query has the rows of its result, each once or as often:
// that the rule takes away no word but the DISTINCT of the outermost SELECT.
func (q executed) keepsRows() bool {
	if q.ran == q.text {
		return true
	}
	tree, err := sql.Parse(q.text)
	return err == nil && len(q.ran) == len(q.text)-len("DISTINCT") && tree.Kind == sql.Select && tree.Child(sql.Limit) == nil &&
		tree.Child(sql.Projection).Value == "DISTINCT"
}

// result runs a query as it stands.
func (e *executor) result(ctx context.Context, on *sqlexec.Database, text string) (sqlexec.Record, error) {
	e.runs++
	return e.cache.Record(ctx, on, text)
}

// execute runs a query as the rule wants it run.
func (e *executor) execute(ctx context.Context, on *sqlexec.Database, text string) (q executed, err error) {
	q = executed{text: text, ran: e.rule.Rewrite(text)}
	q.result, err = e.result(ctx, on, q.ran)
	return q, err
}

// slow is a time beside which a round trip to a worker, some 50 us, does not count.
const slow = 2 * time.Millisecond

// foresee runs queries that will be executed: in one round trip to a worker, slow ones
// side by side.
func (e *executor) foresee(ctx context.Context, on *sqlexec.Database, texts []string) {
	if len(texts) < 2 {
		return
	}
	ran := make([]string, len(texts))
	for i, text := range texts {
		ran[i] = e.rule.Rewrite(text)
	}
	if !e.isSlow {
		e.cache.Prefetch(ctx, on, ran)
		return
	}
	var group sync.WaitGroup
	for _, text := range ran {
		group.Go(func() { e.cache.Record(ctx, on, text) })
	}
	group.Wait()
}

// correct reports that a query's result is gold's under the rule. A query that
// fails is wrong; the error is never the query's fault.
func (e *executor) correct(ctx context.Context, text string) (bool, error) {
	q, err := e.execute(ctx, e.candidates, text)
	if err != nil {
		_, failed := failure(err)
		if failed {
			return false, nil
		}
		return false, err
	}
	e.isSlow = e.isSlow || q.result.Elapsed() > slow
	return e.isAsGold(q), nil
}

func (e *executor) isAsGold(q executed) bool {
	return e.rule.SameRecords(e.gold.result, q.result, e.gold.text)
}

// failure tells a failure that a query caused from an error of the run.
func failure(err error) (sqlexec.Failure, bool) {
	var typed *sqlexec.Error
	if errors.As(err, &typed) {
		return typed.Failure, true
	}
	return "", false
}
