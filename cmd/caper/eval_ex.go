package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	"caper/data"
	"caper/eval"
	"caper/sqlexec"
)

type evalEXCommand struct {
	Bench   string        `help:"Benchmark folder." required:"" type:"path"`
	Format  string        `help:"auto, spider, bird or synsql." default:"auto" enum:"auto,spider,bird,synsql"`
	Split   string        `help:"Split of the benchmark." default:"dev"`
	Pred    files         `help:"Candidate files: ours, official Spider or BIRD predictions." required:"" placeholder:"FILE..."`
	Rule    string        `help:"test-suite, bird or strict; default: the benchmark's own."`
	Out     string        `help:"Verdict file to write." required:"" type:"path"`
	Timeout time.Duration `help:"Time limit of one query." default:"5s"`
	Workers int           `help:"0: one per core." default:"0"`
	JSON    bool          `help:"Print the summary as JSON on stdout."`
}

func (c *evalEXCommand) Help() string {
	return `Example:
  caper eval ex --bench spider --split dev --pred predictions.jsonl --rule test-suite --out verdicts.jsonl`
}

func (c *evalEXCommand) Run(ctx context.Context) error {
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	bench, err := data.OpenBenchmark(c.Bench, c.Format)
	if err != nil {
		return err
	}
	defer bench.Close()
	bench.Limits.Timeout = c.Timeout
	o := eval.ExecutionOptions{Rule: bench.Rule(), Workers: c.Workers}
	if c.Rule != "" {
		if o.Rule, err = sqlexec.ParseRule(c.Rule); err != nil {
			return usageError{err}
		}
	}
	if o.Workers == 0 {
		o.Workers = runtime.NumCPU()
	}
	w, err := data.Create(c.Out)
	if err != nil {
		return err
	}
	defer w.Discard()
	var summary eval.ExecutionSummary
	goldFailure := ""
	err = eval.Execute(ctx, bench, readRollouts(c.Pred, bench, c.Split, nil), o, func(j eval.Judged) error {
		summary.Add(j)
		if j.Verdict == eval.GoldFailed && goldFailure == "" {
			goldFailure = j.Message
		}
		return w.WriteLine(j.Line())
	})
	if err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(summary)
	}
	fmt.Fprintf(os.Stderr, "EX %.2f %% of %d (rule %s) in %s\n", 100*summary.Accuracy, summary.Count, o.Rule, c.Out)
	for _, verdict := range slices.Sorted(maps.Keys(summary.Verdicts)) {
		fmt.Fprintf(os.Stderr, "  %-14s %d\n", verdict, summary.Verdicts[verdict])
	}
	if goldFailure != "" {
		fmt.Fprintf(os.Stderr, "gold_error counts as not correct; the first one: %s\n", goldFailure)
	}
	return nil
}
