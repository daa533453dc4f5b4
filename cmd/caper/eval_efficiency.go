package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
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
	p, err := c.executed(ctx, bench, c.Pred)
	if err != nil {
		return err
	}
	groups, err := c.groups(bench, eval.FileSchemas(bench))
	if err != nil {
		return err
	}
	o := eval.EfficiencyOptions{Score: kind, Repeats: c.Repeats, Workers: max(c.Workers, 1)}
	summary := eval.NewMeanSummary(string(kind), strings.ToUpper(string(kind)), groups)
	file, done := c.verdictFile(bench, o.Evaluator(), map[string]string{"repeats": fmt.Sprint(c.Repeats)}, p.count)
	defer done()
	measure := func(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], emit func(eval.Timed) error) error {
		return eval.MeasureEfficiency(ctx, bench, rollouts, o, emit)
	}
	add := func(t eval.Timed) {
		summary.Add(t.Judged, t.Value)
		summary.AddMedian(t.MedianValue)
	}
	if err := eval.WriteVerdicts(ctx, file, p.all, measure, eval.TimedOf, add); err != nil {
		return err
	}
	done()
	return c.print(summary)
}
