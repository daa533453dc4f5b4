package main

import (
	"cmp"
	"context"
	"strings"

	"caper/data"
	"caper/eval"
)

// efficiencyFlags are those of eval ves and eval rves.
type efficiencyFlags struct {
	evalFlags `embed:""`
	Repeats   int `help:"Timed runs of each correct prediction and its gold." default:"100"`
}

type evalVESCommand struct {
	efficiencyFlags `embed:""`
}

type evalRVESCommand struct {
	efficiencyFlags `embed:""`
}

func (c *evalVESCommand) Help() string {
	return `Example:
  caper eval ves --bench bird --split dev --pred predictions.json --out speed.jsonl`
}

func (c *evalRVESCommand) Help() string {
	return `Example:
  caper eval rves --bench bird --split dev --pred predictions.json --out speed.jsonl`
}

// Validate checks the flags.
func (c *efficiencyFlags) Validate() error {
	return cmp.Or(c.check(), checkNumber("--repeats", c.Repeats, 1, 100_000))
}

func (c *evalVESCommand) Run(ctx context.Context) error  { return c.measure(ctx, eval.VES) }
func (c *evalRVESCommand) Run(ctx context.Context) error { return c.measure(ctx, eval.RVES) }

func (c *efficiencyFlags) measure(ctx context.Context, kind eval.EfficiencyScore) error {
	bench, err := c.open(eval.Bird)
	if err != nil {
		return err
	}
	defer bench.Close()
	rollouts, groups, err := c.judged(ctx, bench)
	if err != nil {
		return err
	}
	o := eval.EfficiencyOptions{Score: kind, Repeats: c.Repeats, Workers: max(c.Workers, 1)}
	summary := eval.NewMeanSummary(string(kind), strings.ToUpper(string(kind)), groups)
	err = c.lines(func(w *data.File) error {
		return eval.MeasureEfficiency(ctx, bench, rollouts, o, func(t eval.Timed) error {
			summary.Add(t.Judged, t.Value)
			summary.AddMedian(t.MedianValue)
			return w.WriteLine(t.Line())
		})
	})
	if err != nil {
		return err
	}
	return c.print(summary)
}
