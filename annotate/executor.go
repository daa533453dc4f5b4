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
	rule     sqlexec.Rule
	gold     string
	// expected is gold's result.
	expected *sqlexec.Result
	// runs counts the queries asked for, cached or not.
	runs int
}

// result runs a query as it stands.
func (e *executor) result(ctx context.Context, text string) (*sqlexec.Result, error) {
	e.runs++
	return e.cache.Query(ctx, e.database, text)
}

// judged runs a query as the rule wants it run.
func (e *executor) judged(ctx context.Context, text string) (*sqlexec.Result, error) {
	return e.result(ctx, e.rule.Rewrite(text))
}

// correct reports that a query's result is gold's under the rule. A query that
// fails is wrong; the error is never the query's fault.
func (e *executor) correct(ctx context.Context, text string) (bool, error) {
	result, err := e.judged(ctx, text)
	if err != nil {
		_, failed := failure(err)
		if failed {
			return false, nil
		}
		return false, err
	}
	return e.rule.Same(e.expected, result, e.gold), nil
}

// failure tells a failure that a query caused from an error of the run.
func failure(err error) (sqlexec.Failure, bool) {
	var typed *sqlexec.Error
	if errors.As(err, &typed) {
		return typed.Failure, true
	}
	return "", false
}
