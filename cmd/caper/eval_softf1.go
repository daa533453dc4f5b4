package main

import (
	"context"
	"iter"

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
	defer collectRarely()()
	bench, err := c.open(eval.Bird)
	if err != nil {
		return err
	}
	defer bench.Close()
	p, err := c.executed(ctx, bench, c.Pred)
	if err != nil {
		return err
	}
	groups, err := c.groups(bench, eval.FileSchemas(bench))
	if err != nil {
		return err
	}
	summary := eval.NewMeanSummary("soft_f1", "Soft-F1", groups)
	file, done := c.verdictFile(bench, eval.SoftF1Evaluator, nil, p.count)
	defer done()
	judge := func(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], emit func(eval.Softly) error) error {
		return eval.JudgeSoftly(ctx, bench, rollouts, c.workers(), emit)
	}
	add := func(s eval.Softly) { summary.Add(s.Judged, s.SoftF1) }
	if err := eval.WriteVerdicts(ctx, file, p.all, judge, eval.SoftlyOf, add); err != nil {
		return err
	}
	done()
	return c.print(summary)
}
