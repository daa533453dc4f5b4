package annotate

import (
	"context"
	"errors"

	"caper/sqlexec"
)

// executor runs queries on one database and judges them against one gold query
// by the benchmark's comparison rule.
type executor struct {
	database *sqlexec.Database
	cache    *sqlexec.Cache
	domains  *domains
	rule     sqlexec.Rule
	gold     executed
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

// result runs a query as it stands.
func (e *executor) result(ctx context.Context, text string) (sqlexec.Record, error) {
	e.runs++
	return e.cache.Record(ctx, e.database, text)
}

// execute runs a query as the rule wants it run.
func (e *executor) execute(ctx context.Context, text string) (q executed, err error) {
	q = executed{text: text, ran: e.rule.Rewrite(text)}
	q.result, err = e.result(ctx, q.ran)
	return q, err
}

// foresee runs queries that will be executed, in one round trip to a worker.
func (e *executor) foresee(ctx context.Context, texts []string) {
	if len(texts) < 2 {
		return
	}
	ran := make([]string, len(texts))
	for i, text := range texts {
		ran[i] = e.rule.Rewrite(text)
	}
	e.cache.Prefetch(ctx, e.database, ran)
}

// correct reports that a query's result is gold's under the rule. A query that
// fails is wrong; the error is never the query's fault.
func (e *executor) correct(ctx context.Context, text string) (bool, error) {
	q, err := e.execute(ctx, text)
	if err != nil {
		_, failed := failure(err)
		if failed {
			return false, nil
		}
		return false, err
	}
	return e.rule.SameRecords(e.gold.result, q.result, e.gold.text), nil
}

// failure tells a failure that a query caused from an error of the run.
func failure(err error) (sqlexec.Failure, bool) {
	var typed *sqlexec.Error
	if errors.As(err, &typed) {
		return typed.Failure, true
	}
	return "", false
}
