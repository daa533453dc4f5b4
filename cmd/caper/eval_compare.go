package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"caper/eval"
)

type evalCompareCommand struct {
	A         string `arg:"" help:"A verdict file, or with --bench a prediction file." type:"path"`
	B         string `arg:"" help:"The other one; may be the same file, with other sources." type:"path"`
	SourceA   string `help:"The system of A, where the file has several." placeholder:"NAME"`
	SourceB   string `help:"The system of B." placeholder:"NAME"`
	Bench     string `help:"Benchmark folder, to judge prediction files." type:"path" placeholder:"DIR"`
	Gold      string `help:"Official gold file, a query, a tab and a database a line, instead of the split's questions." type:"path" placeholder:"FILE"`
	Rule      string `help:"spider, test-suite, bird or strict; default: the benchmark's own." placeholder:"RULE"`
	Resamples int    `help:"Bootstrap resamples of the questions." default:"10000"`
	Seed      uint64 `help:"Seed of the bootstrap." default:"0"`
	JSON      bool   `help:"Print the comparison as JSON on stdout."`

	benchPartFlags `embed:""`
}

func (c *evalCompareCommand) Help() string {
	return `Example:
  caper eval compare a.verdicts.jsonl b.verdicts.jsonl
  caper eval compare --bench spider --split dev --not-db wta_1 predictions-a.txt predictions-b.txt`
}

// Validate checks the flags.
func (c *evalCompareCommand) Validate() error {
	if c.Rule != "" {
		if _, err := eval.ParseRule(c.Rule); err != nil {
			return fmt.Errorf("--rule: %w", err)
		}
	}
	if c.Bench == "" && (c.Rule != "" || c.Gold != "" || len(c.DB)+len(c.NotDB) > 0 || c.Timeout != nil) {
		return errors.New("--rule, --gold, --db, --not-db and --timeout need --bench; verdict files were judged when they were written")
	}
	if err := c.check(); err != nil {
		return err
	}
	return checkNumber("--resamples", c.Resamples, 1, 10_000_000)
}

func (c *evalCompareCommand) Run(ctx context.Context) error {
	a, err := c.read(ctx, c.A, "--source-a", c.SourceA)
	if err != nil {
		return err
	}
	b, err := c.read(ctx, c.B, "--source-b", c.SourceB)
	if err != nil {
		return err
	}
	comparison, err := eval.CompareVerdicts(a, b, c.Resamples, c.Seed)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.A, c.B, err)
	}
	if comparison.Questions == 0 {
		return fmt.Errorf("%s and %s: no question has a verdict in both", c.A, c.B)
	}
	if c.JSON {
		return printJSON(comparison)
	}
	_, err = fmt.Fprint(os.Stderr, comparison)
	return err
}

// read returns the verdicts of one system of a file.
func (c *evalCompareCommand) read(ctx context.Context, path, flag, source string) (*eval.Verdicts, error) {
	sources, err := c.sources(ctx, path)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(sources))
	switch {
	case sources[source] != nil:
		return sources[source], nil
	case source != "":
		return nil, usageError{fmt.Errorf("%s %s: %s has %s", flag, source, path, strings.Join(names, ", "))}
	case len(names) == 1:
		return sources[names[0]], nil
	case len(names) == 0:
		return nil, fmt.Errorf("%s: no predictions", path)
	}
	return nil, usageError{fmt.Errorf("%s has several systems: choose one with %s: %s", path, flag, strings.Join(names, ", "))}
}

func (c *evalCompareCommand) sources(ctx context.Context, path string) (map[string]*eval.Verdicts, error) {
	if c.Bench == "" {
		return eval.ReadVerdicts(path)
	}
	f := evalFlags{benchFlags: benchFlags{c.Bench, c.benchPartFlags}, Gold: c.Gold}
	bench, err := f.open(eval.Rule(c.Rule))
	if err != nil {
		return nil, err
	}
	defer bench.Close()
	p, err := f.executed(ctx, bench, []string{path})
	if err != nil {
		return nil, err
	}
	rule := eval.Rule(cmp.Or(c.Rule, string(bench.Rule())))
	o := eval.ExecutionOptions{Rule: rule, Workers: f.workers(), Schemas: eval.NewSchemas(bench)}
	progress, done := newProgress(os.Stderr, judging, p.count)
	defer done()
	sources, judged := map[string]*eval.Verdicts{}, 0
	err = eval.Execute(ctx, bench, p.all, o, func(j eval.Judged) error {
		judged++
		progress(judged)
		return eval.AddVerdict(sources, j)
	})
	return sources, err
}
