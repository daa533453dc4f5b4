package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"

	"caper/data"
	"caper/eval"
	"caper/sqlexec"
)

type evalEXCommand struct {
	benchFlags `embed:""`
	Pred       files  `help:"Candidate files: ours, official Spider or BIRD predictions." required:"" placeholder:"FILE..."`
	Rule       string `help:"test-suite, bird or strict; default: the benchmark's own."`
	Out        string `help:"Verdict file to write." required:"" type:"path"`
	JSON       bool   `help:"Print the summary as JSON on stdout."`
}

func (c *evalEXCommand) Help() string {
	return `Example:
  caper eval ex --bench spider --split dev --pred predictions.jsonl --rule test-suite --out verdicts.jsonl`
}

// Validate checks the flags.
func (c *evalEXCommand) Validate() error {
	if c.Rule != "" {
		if _, err := sqlexec.ParseRule(c.Rule); err != nil {
			return fmt.Errorf("--rule: %w", err)
		}
	}
	return c.benchFlags.check()
}

func (c *evalEXCommand) Run(ctx context.Context) error {
	bench, err := c.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	rollouts, err := c.candidates(ctx, bench, c.Pred)
	if err != nil {
		return err
	}
	o := eval.ExecutionOptions{Rule: bench.Rule(), Workers: c.Workers}
	if c.Rule != "" {
		o.Rule, _ = sqlexec.ParseRule(c.Rule) // checked by Validate
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
	err = eval.Execute(ctx, bench, rollouts, o, func(j eval.Judged) error {
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
