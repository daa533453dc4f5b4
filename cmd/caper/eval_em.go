package main

import (
	"context"

	"caper/data"
	"caper/eval"
	"caper/eval/exactmatch"
)

type evalEMCommand struct {
	evalFlags `embed:""`
	Release   string `help:"current: the script as it is; first: Spider's first release, which made its own example." enum:"current,first" default:"current"`
	ValueWord bool   `help:"Replace the letters \"value\" in predictions by 1 first, as the test-suite evaluator does."`
	Explain   bool   `help:"Name what was overlooked in each match that is none when nothing is."`
}

func (c *evalEMCommand) Help() string {
	return `Example:
  caper eval em --bench spider --split dev --pred predictions.txt --out matches.jsonl`
}

// Validate checks the flags.
func (c *evalEMCommand) Validate() error { return c.benchFlags.check() }

func (c *evalEMCommand) Run(ctx context.Context) error {
	bench, err := c.open("")
	if err != nil {
		return err
	}
	defer bench.Close()
	rollouts, err := c.predictions(bench)
	if err != nil {
		return err
	}
	o := eval.MatchOptions{
		Schemas: eval.NewSchemas(bench), Workers: c.workers(), Quirks: exactmatch.Official, ValueWord: c.ValueWord, Explain: c.Explain,
	}
	if c.Release == "first" {
		o.Quirks = exactmatch.FirstRelease
	}
	groups, err := c.groups(bench, o.Schemas)
	if err != nil {
		return err
	}
	summary := eval.NewMatchSummary(groups)
	err = c.lines(func(w *data.File) error {
		return eval.MatchExactly(ctx, rollouts, o, func(m eval.Matched) error {
			summary.Add(m)
			return w.WriteLine(m.Line())
		})
	})
	if err != nil {
		return err
	}
	summary.Finish()
	return c.print(summary)
}
