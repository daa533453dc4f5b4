package main

import (
	"context"
	"fmt"
	"iter"

	"caper/data"
	"caper/eval"
	"caper/eval/exactmatch"
)

type evalEMCommand struct {
	evalFlags `embed:""`
	Script    string   `help:"spider (taoyds/spider), test-suite (taoyds/test-suite-sql-eval), or first (Spider's first release)." enum:"spider,test-suite,first" default:"spider"`
	Without   []string `help:"Leave out quirks of the script, e.g. fk-merged." placeholder:"QUIRK,..."`
	Explain   bool     `help:"Name what was overlooked in each match that is none when nothing is."`
}

func (c *evalEMCommand) Help() string {
	return `Example:
  caper eval em --bench spider --split dev --pred predictions.txt --out matches.jsonl`
}

// Validate checks the flags.
func (c *evalEMCommand) Validate() error { return c.check() }

func (c *evalEMCommand) Run(ctx context.Context) error {
	defer collectRarely()()
	bench, err := c.open("")
	if err != nil {
		return err
	}
	defer bench.Close()
	p, err := c.predictions(ctx, bench, c.Pred)
	if err != nil {
		return err
	}
	o := eval.MatchOptions{
		Schemas: eval.NewSchemas(bench), Workers: c.workers(), Script: exactmatch.Script(c.Script), Explain: c.Explain,
	}
	if o.Without, err = eval.CheckQuirks(c.Without, eval.MatchQuirks(o.Script)); err != nil {
		return usageError{fmt.Errorf("--without: %w", err)}
	}
	groups, err := c.groups(bench, o.Schemas)
	if err != nil {
		return err
	}
	summary := eval.NewMatchSummary(groups)
	file, done := c.verdictFile(bench, o.Evaluator(), map[string]string{"explain": fmt.Sprint(c.Explain)}, p.count)
	defer done()
	match := func(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], emit func(eval.Matched) error) error {
		return eval.MatchExactly(ctx, rollouts, o, emit)
	}
	if err := eval.WriteVerdicts(ctx, file, p.all, match, eval.MatchedOf, summary.Add); err != nil {
		return err
	}
	done()
	summary.Finish()
	return c.print(summary)
}
