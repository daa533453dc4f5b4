package main

import (
	"cmp"
	"context"
	"fmt"

	"caper/data"
	"caper/eval"
)

type evalEXCommand struct {
	evalFlags `embed:""`
	Rule      string   `help:"spider, test-suite, bird or strict; default: the benchmark's own." placeholder:"RULE"`
	Explain   bool     `help:"Name the quirks behind each verdict that the strict rule does not share."`
	Without   []string `help:"Leave out quirks of the rule, e.g. value-word." placeholder:"QUIRK,..."`
}

func (c *evalEXCommand) Help() string {
	return `Example:
  caper eval ex --bench spider --split dev --pred predictions.jsonl --rule test-suite --out verdicts.jsonl`
}

// Validate checks the flags.
func (c *evalEXCommand) Validate() error {
	if c.Rule != "" {
		if _, err := eval.ParseRule(c.Rule); err != nil {
			return fmt.Errorf("--rule: %w", err)
		}
	}
	return c.check()
}

func (c *evalEXCommand) Run(ctx context.Context) error {
	bench, err := c.open(eval.Rule(c.Rule))
	if err != nil {
		return err
	}
	defer bench.Close()
	rollouts, groups, err := c.judged(ctx, bench)
	if err != nil {
		return err
	}
	o := eval.ExecutionOptions{
		Rule: eval.Rule(cmp.Or(c.Rule, string(bench.Rule()))), Workers: c.workers(), Schemas: eval.NewSchemas(bench), Explain: c.Explain,
	}
	if o.Without, err = eval.CheckQuirks(c.Without, o.Rule.Quirks()); err != nil {
		return usageError{fmt.Errorf("--without: %w", err)}
	}
	summary := eval.NewExecutionSummary(o.Rule, groups)
	err = c.lines(func(w *data.File) error {
		return eval.Execute(ctx, bench, rollouts, o, func(j eval.Judged) error {
			summary.Add(j)
			return w.WriteLine(j.Line())
		})
	})
	if err != nil {
		return err
	}
	return c.print(summary)
}
