package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
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
	Resume     bool   `help:"Go on where a stopped run to the same file left off."`
	JSON       bool   `help:"Print the summary as JSON on stdout."`
}

// birdTimeout is the limit of BIRD's evaluators.
const birdTimeout = 30 * time.Second

// check checks the flags.
func (f *evalFlags) check() error {
	if data.IsParquet(f.Out) {
		return fmt.Errorf("--out %s: a verdict file is JSON Lines: choose another name", f.Out)
	}
	return cmp.Or(f.benchFlags.check(), checkRereadable("--pred", f.Pred...), checkOutput(f.Out, append(f.Pred, f.Gold)...))
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

// workers is how many predictions are in hand at a time. Queries run in as many processes
// as there are cores; more predictions than that, since some wait for one another's gold.
func (f *evalFlags) workers() int { return cmp.Or(f.Workers, 3*runtime.NumCPU()) }

// print shows a summary.
func (f *evalFlags) print(summary fmt.Stringer) error {
	if f.JSON {
		return printJSON(summary)
	}
	_, err := fmt.Fprint(os.Stderr, summary)
	return err
}

// predictions are what a command judges.
type predictions struct {
	all   iter.Seq2[data.Rollout, error]
	count int
	dbIDs []string
}

// predictions reads those that the flags keep, once to the end: a broken line ends the
// command before it begins.
func (f *evalFlags) predictions(ctx context.Context, bench *data.Benchmark, paths []string) (p predictions, err error) {
	if err := f.checkDatabases(bench); err != nil {
		return p, err
	}
	p.all = func(yield func(data.Rollout, error) bool) {
		for r, err := range data.ReadPredictions(paths, bench, f.Split) {
			if (err != nil || f.keeps(r.DBID)) && !yield(r, err) {
				return
			}
		}
	}
	dbIDs := map[string]bool{}
	for r, err := range p.all {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return p, err
		}
		dbIDs[r.DBID] = true
		p.count++
	}
	if p.count == 0 {
		return p, fmt.Errorf("%s: no predictions: give files with some, or keep more databases with --db and --not-db", strings.Join(paths, ", "))
	}
	p.dbIDs = slices.Sorted(maps.Keys(dbIDs))
	return p, nil
}

// executed are predictions whose databases are there, and one of them can be used. Where
// another is damaged its predictions get a verdict that says so.
func (f *evalFlags) executed(ctx context.Context, bench *data.Benchmark, paths []string) (predictions, error) {
	p, err := f.predictions(ctx, bench, paths)
	if err != nil {
		return p, err
	}
	missing := func(id string) bool {
		_, err := os.Stat(bench.DatabasePath(id))
		return errors.Is(err, fs.ErrNotExist)
	}
	usable := func(id string) bool {
		_, err := bench.Database(id)
		return err == nil
	}
	if slices.ContainsFunc(p.dbIDs, missing) || !slices.ContainsFunc(p.dbIDs, usable) {
		return p, fmt.Errorf("%w (--not-db or --db leave a database out)", bench.CheckDatabases(p.dbIDs))
	}
	return p, nil
}

// judging is the work of all evaluators.
var judging = work{doing: "judging", done: "judged"}

// verdictFile is the file to write, with what its verdicts depend on, and closes the
// progress.
func (f *evalFlags) verdictFile(bench *data.Benchmark, by eval.Evaluator, more map[string]string, total int) (file eval.VerdictFile, done func()) {
	settings := f.settings(bench, more)
	settings["evaluator"] = by.String()
	progress, done := newProgress(os.Stderr, judging, total)
	return eval.VerdictFile{Path: f.Out, Resume: f.Resume, Settings: settings, Progress: progress}, done
}
