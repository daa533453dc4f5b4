package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"

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
	defer collectRarely()()
	bench, err := c.open(eval.Rule(c.Rule))
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
	o := eval.ExecutionOptions{
		Rule: eval.Rule(cmp.Or(c.Rule, string(bench.Rule()))), Workers: c.workers(), Schemas: eval.NewSchemas(bench), Explain: c.Explain,
	}
	if o.Without, err = eval.CheckQuirks(c.Without, o.Rule.Quirks()); err != nil {
		return usageError{fmt.Errorf("--without: %w", err)}
	}
	summary := eval.NewExecutionSummary(o.Rule, groups)
	file, done := c.verdictFile(bench, o.Evaluator(), map[string]string{"explain": fmt.Sprint(c.Explain)}, p.count)
	defer done()
	judge := func(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], emit func(eval.Judged) error) error {
		return eval.Execute(ctx, bench, rollouts, o, emit)
	}
	if err := eval.WriteVerdicts(ctx, file, p.all, judge, eval.JudgedOf, summary.Add); err != nil {
		return err
	}
	done()
	return c.print(summary)
}
