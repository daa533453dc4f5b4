package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"time"

	"caper/data"
	"caper/eval"
	"caper/sqlexec"
)

// evalFlags are shared by the commands that judge predictions.
type evalFlags struct {
	benchFlags `embed:""`
	Gold       string `help:"Official gold file, a query, a tab and a database a line, instead of the split's questions." type:"path" placeholder:"FILE"`
	Pred       files  `help:"Prediction files: ours, official Spider or BIRD form." required:"" placeholder:"FILE..."`
	Out        string `help:"Verdict file to write, one line a prediction." required:"" type:"path"`
	JSON       bool   `help:"Print the summary as JSON on stdout."`
}

// birdTimeout is the limit of BIRD's evaluators.
const birdTimeout = 30 * time.Second

// check checks the flags.
func (f *evalFlags) check() error {
	return cmp.Or(f.benchFlags.check(), checkOutput(f.Out, append(f.Pred, f.Gold)...))
}

// open opens the benchmark with the time limit of the rule's evaluator, unless
// --timeout gives one.
func (f *evalFlags) open(rule eval.Rule) (*data.Benchmark, error) {
	bench, err := f.benchFlags.open()
	if err != nil {
		return nil, err
	}
	if f.Timeout == nil && (rule == eval.Bird || rule == "" && bench.Rule() == sqlexec.Bird) {
		bench.Limits.Timeout = birdTimeout
	}
	if f.Gold != "" {
		questions, err := data.ReadGold(f.Gold)
		if err != nil {
			return nil, err
		}
		bench.UseQuestions(f.Split, questions)
	}
	return bench, nil
}

// groups prepares the tables of a summary.
func (f *evalFlags) groups(bench *data.Benchmark, schemas *eval.Schemas) (*eval.Groups, error) {
	questions, err := bench.Questions(f.Split)
	if err != nil {
		return nil, err
	}
	questions = slices.DeleteFunc(slices.Clone(questions), func(q data.Question) bool { return !f.keeps(q.DBID) })
	return eval.NewGroups(questions, schemas), nil
}

func (f *evalFlags) workers() int { return cmp.Or(f.Workers, runtime.NumCPU()) }

// lines writes a verdict file.
func (f *evalFlags) lines(write func(*data.File) error) error {
	w, err := data.Create(f.Out)
	if err != nil {
		return err
	}
	defer w.Discard()
	if err := write(w); err != nil {
		return err
	}
	return w.Commit()
}

// print shows a summary.
func (f *evalFlags) print(summary fmt.Stringer) error {
	if f.JSON {
		return printJSON(summary)
	}
	_, err := fmt.Fprint(os.Stderr, summary)
	return err
}

// predictions are the candidates that the flags keep, whether or not their databases
// are there.
func (f *evalFlags) predictions(bench *data.Benchmark) (iter.Seq2[data.Rollout, error], error) {
	return readRollouts(f.Pred, bench, f.Split, func(r data.Rollout) bool { return f.keeps(r.DBID) }), f.checkDatabases(bench)
}

// judged chains the steps of a command that runs queries.
func (f *evalFlags) judged(ctx context.Context, bench *data.Benchmark) (iter.Seq2[data.Rollout, error], *eval.Groups, error) {
	rollouts, err := f.candidates(ctx, bench, f.Pred)
	if err != nil {
		return nil, nil, err
	}
	groups, err := f.groups(bench, eval.FileSchemas(bench))
	return rollouts, groups, err
}
