package reward

import (
	"context"
	"slices"
	"strings"
	"sync"

	"caper/data"
	"caper/eval"
	"caper/sql"
)

// Executor finds out whether sampled queries give gold's result. It is safe for
// concurrent use: whatever number of groups is under way, as many queries run at a time as
// its options' Workers says.
type Executor struct {
	databases eval.Databases
	options   eval.ExecutionOptions
	extract   func(string) string
	turns     chan struct{}
}

// NewExecutor returns one that judges by the options' rule and keeps results in their
// cache. extract finds the query in a text that is none as it stands, for policies that say
// more than SQL; nil: the whole text must be the query.
func NewExecutor(databases eval.Databases, o eval.ExecutionOptions, extract func(string) string) *Executor {
	return &Executor{databases, o, extract, make(chan struct{}, max(o.Workers, 1))}
}

// Execute judges the answers to a question. Equal queries run once. What says nothing about
// an answer (a database or gold that fails, a machine without processes or memory) makes
// its reward missing. The error is ctx's.
func (x *Executor) Execute(ctx context.Context, q data.Question, answers []*Answer) error {
	same := map[string][]*Answer{}
	for _, a := range answers {
		x.read(a)
		if a.Query != "" {
			same[a.Query] = append(same[a.Query], a)
		}
	}
	var all sync.WaitGroup
	for query, answers := range same {
		all.Go(func() {
			select {
			case x.turns <- struct{}{}:
			case <-ctx.Done():
				return
			}
			verdict, message, missing := x.judge(ctx, q, query)
			<-x.turns
			for _, a := range answers {
				a.Verdict, a.Message, a.Missing = verdict, message, missing
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// Options are how it judges.
func (x *Executor) Options() eval.ExecutionOptions { return x.options }

// Query is the query in a text, empty where there is none: what Execute would judge.
func (x *Executor) Query(text string) string {
	a := Answer{Text: text}
	x.read(&a)
	return a.Query
}

// read finds the query and its clauses in a text.
func (x *Executor) read(a *Answer) {
	query := a.Text
	_, err := sql.Parse(query)
	if err != nil && x.extract != nil {
		if query = x.extract(a.Text); query != "" {
			_, err = sql.Parse(query)
		}
	}
	start := strings.LastIndex(a.Text, query)
	if err != nil || query == "" || start < 0 {
		a.Verdict, a.Message = eval.Failed, "no SELECT statement"
		if err != nil {
			a.Message = err.Error()
		}
		return
	}
	a.Query, a.Start, a.Clauses = query, start, slices.Clone(sql.Clauses(query))
	for k := range a.Clauses {
		a.Clauses[k].Start += start
		a.Clauses[k].End += start
	}
}

// judge runs one query.
func (x *Executor) judge(ctx context.Context, q data.Question, query string) (v eval.Verdict, message, missing string) {
	candidate := data.Rollout{Dataset: q.Dataset, QuestionID: q.ID, DBID: q.DBID, Gold: q.Gold, SQL: query}
	err := eval.Execute(ctx, x.databases, eval.Each([]data.Rollout{candidate}), x.options, func(j eval.Judged) error {
		v, message = j.Verdict, j.Message
		return nil
	})
	switch {
	case err != nil:
		return "", err.Error(), "execution"
	case v == eval.GoldFailed || v == eval.GoldTimeout || v == eval.DatabaseFailed:
		return v, message, string(v)
	}
	return v, message, ""
}
