package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"

	"caper/data"
	"caper/eval"
	"caper/solve"
	"caper/solve/ablation"
)

type solveAblateCommand struct {
	poolFlags   `embed:""`
	repairFlags `embed:""`
	selectFlags `embed:""`
	modelFlags  `embed:""`
	serverFlags `embed:""`
	Rule        string   `help:"spider, test-suite, bird or strict; default: the benchmark's own." placeholder:"RULE"`
	Specialist  []string `help:"Sources that are one half of the pool; the others are the other half." placeholder:"SOURCE,..."`
	JSON        bool     `help:"Print the rows as JSON on stdout."`
}

func (c *solveAblateCommand) Help() string {
	return `Example:
  caper solve ablate --bench spider --split dev --not-db wta_1 --candidates predictions.jsonl --rule bird --out table.md

Answers every question by the whole pipeline, and by each variant with one part changed: the pool (--specialist), the
lifecycle of candidates, the selector. Each is compared with the whole by McNemar's test; the table has the best that any
choice could do, and the cost, beside each.`
}

// Validate checks the flags.
func (c *solveAblateCommand) Validate() error {
	if c.Rule != "" {
		if _, err := eval.ParseRule(c.Rule); err != nil {
			return fmt.Errorf("--rule: %w", err)
		}
	}
	return cmp.Or(c.poolFlags.check(), c.repairFlags.check(&c.serverFlags), c.selectFlags.check(&c.serverFlags), c.modelFlags.check(), c.serverFlags.check())
}

func (c *solveAblateCommand) Run(ctx context.Context) error {
	defer collectRarely()()
	bench, err := c.benchFlags.open()
	if err != nil {
		return err
	}
	defer bench.Close()
	pools, err := c.pools(bench)
	if err != nil {
		return err
	}
	o := ablation.Options{Rule: eval.Rule(cmp.Or(c.Rule, string(bench.Rule()))), Workers: cmp.Or(c.Workers, 3*runtime.NumCPU()), Specialist: c.Specialist}
	if o.Repair, err = c.repairFlags.open(bench, solve.NewPrompter(bench), &c.serverFlags); err != nil {
		return err
	}
	if o.Select, err = c.selectFlags.options(bench, &c.modelFlags, &c.serverFlags); err != nil {
		return err
	}
	w, err := data.Create(c.Out)
	if err != nil {
		return err
	}
	defer w.Discard()
	rows, err := ablation.Study(ctx, bench, c.Split, pools, o)
	if err != nil {
		return err
	}
	if err := ablation.Markdown(w, rows); err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(rows)
	}
	return ablation.Markdown(os.Stderr, rows)
}
