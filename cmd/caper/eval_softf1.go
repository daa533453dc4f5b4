package main

import (
	"context"

	"caper/data"
	"caper/eval"
)

type evalSoftF1Command struct {
	evalFlags `embed:""`
}

func (c *evalSoftF1Command) Help() string {
	return `Example:
  caper eval softf1 --bench bird --split dev --pred predictions.json --out soft.jsonl`
}

// Validate checks the flags.
func (c *evalSoftF1Command) Validate() error { return c.check() }

func (c *evalSoftF1Command) Run(ctx context.Context) error {
	bench, err := c.open(eval.Bird)
	if err != nil {
		return err
	}
	defer bench.Close()
	rollouts, groups, err := c.judged(ctx, bench)
	if err != nil {
		return err
	}
	summary := eval.NewMeanSummary("soft_f1", "Soft-F1", groups)
	err = c.lines(func(w *data.File) error {
		return eval.JudgeSoftly(ctx, bench, rollouts, eval.ExecutionOptions{Workers: c.workers()}, func(s eval.Softly) error {
			summary.Add(s.Judged, s.SoftF1)
			return w.WriteLine(s.Line())
		})
	})
	if err != nil {
		return err
	}
	return c.print(summary)
}
