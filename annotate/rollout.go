package annotate

import (
	"context"
	"strings"
	"unicode/utf8"

	"caper/data"
	"caper/sql"
	"caper/sqlexec"

	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/token"
)

// outcome is what one rollout gave.
type outcome struct {
	tuples []preference
	// reason says why there are no tuples, "" where there are some.
	reason  Reason
	verdict verdict
	cut     bool // text behind the first statement was left out
	repairOutcome
	tried    int
	mutants  int
	rejected map[Reason]int
	runs     int
}

// repairOutcome is what the repair of a failing rollout found.
type repairOutcome struct {
	singles  int  // the clauses whose repair alone makes it correct
	restated bool // the one is found with gold restated only
	agrees   bool // the one is the first divergent clause
}

// verdict is what execution says of a rollout.
type verdict int

const (
	unjudged verdict = iota
	correct
	failing
)

// reject counts a rejected mutant.
func (out *outcome) reject(r Reason) {
	if out.rejected == nil {
		out.rejected = make(map[Reason]int)
	}
	out.rejected[r]++
}

// annotator holds what all rollouts share.
type annotator struct {
	Options
	bench   *data.Benchmark
	cache   *sqlexec.Cache
	domains domains
}

// rollout annotates one rollout: mutants where it is correct, a repair where it
// is not. The error is never the rollout's fault.
func (a *annotator) rollout(ctx context.Context, r data.Rollout) (*outcome, error) {
	out := &outcome{}
	switch {
	case strings.TrimSpace(r.SQL) == "":
		out.reason = NoQuery
		return out, nil
	case !utf8.ValidString(r.SQL):
		out.reason = NoParse
		return out, nil
	}
	e, schema, reason, err := a.against(ctx, r.DBID, r.Gold)
	if err != nil || reason != "" {
		out.reason = reason
		return out, err
	}
	defer func() { out.runs = e.runs }()
	isCorrect, err := e.correct(ctx, r.SQL)
	if err != nil {
		return nil, err
	}
	out.verdict = failing
	if isCorrect {
		out.verdict = correct
	}
	return out, a.label(ctx, r, schema, e, out)
}

// against prepares to judge queries against a gold query. The reason says why that
// cannot be done, "" where it can; the error is never gold's fault.
func (a *annotator) against(ctx context.Context, dbID, gold string) (e *executor, schema *sql.Schema, reason Reason, err error) {
	database, err := a.bench.Database(dbID)
	if err != nil {
		return nil, nil, "", err
	}
	if schema, err = a.bench.Schema(dbID); err != nil {
		return nil, nil, "", err
	}
	if e, err = a.newExecutor(ctx, database, gold); err != nil {
		cause, failed := failure(err)
		switch {
		case !failed:
			return nil, nil, "", err
		case cause == sqlexec.Timeout:
			return nil, nil, GoldTimeout, nil
		}
		return nil, nil, GoldError, nil
	}
	return e, schema, "", nil
}

// label makes the tuples of a judged rollout.
func (a *annotator) label(ctx context.Context, r data.Rollout, schema *sql.Schema, e *executor, out *outcome) error {
	if out.verdict == correct && !a.Injection || out.verdict == failing && !a.Counterfactual {
		return nil
	}
	own, ok := a.readable(r.SQL, schema, out)
	if !ok {
		out.reason = NoParse
		return nil
	}
	base, err := a.base(r)
	if err != nil {
		return err
	}
	base.Cut = out.cut
	if out.verdict == correct {
		out.tuples, err = a.inject(ctx, base, own, e, out)
		if err == nil && len(out.tuples) == 0 {
			out.reason = NoMutant
		}
		return err
	}
	if out.cut {
		ok, err := e.correct(ctx, own.text)
		if err != nil || ok {
			out.reason = RunOn
			return err
		}
	}
	gold, ok := parse(r.Gold, schema, Top)
	if !ok {
		out.reason = GoldNoParse
		return nil
	}
	out.tuples, err = a.intervene(ctx, base, own, gold, e, out)
	return err
}

// readable parses a rollout's text. Where it is no single statement, what runs
// on after the first statement or from a comment on is cut.
func (a *annotator) readable(text string, schema *sql.Schema, out *outcome) (*statement, bool) {
	if s, ok := parse(text, schema, a.Granularity); ok {
		return s, true
	}
	out.cut = true
	clauses := sql.Clauses(text)
	ends := []int{len(text)}
	if len(clauses) > 0 {
		ends[0] = clauses[len(clauses)-1].End
	}
	_, trivia := lexer.LexFile(text)
	for _, t := range trivia {
		if t.Kind == token.COMMENT {
			ends = append(ends, t.Pos)
			break
		}
	}
	for _, end := range ends {
		if s, ok := parse(strings.TrimRight(text[:end], spaces), schema, a.Granularity); ok {
			return s, true
		}
	}
	return nil, false
}

// base fills in the fields that come from the question.
func (a *annotator) base(r data.Rollout) (data.Tuple, error) {
	t := data.Tuple{
		Dataset:    r.Dataset,
		QuestionID: r.QuestionID,
		DBID:       r.DBID,
		Question:   r.Question,
		Evidence:   r.Evidence,
		Split:      a.splitOf(r.DBID),
	}
	var err error
	t.Prompt, err = a.bench.Prompt(data.Question{
		Dataset: r.Dataset, ID: r.QuestionID, DBID: r.DBID, Question: r.Question, Evidence: r.Evidence,
	})
	return t, err
}
