package main

import (
	"context"
	"fmt"
	"os"

	"caper/data"
	"caper/data/sample"
)

type sampleCommand struct {
	Dir     string `arg:"" help:"Folder to write; must not exist yet or be empty." type:"path"`
	Seed    uint64 `help:"The same seed gives the same bytes." default:"1"`
	Samples int    `help:"Simulated candidates of each of three writers for each question." default:"1"`
	JSON    bool   `help:"Print the counts as JSON on stdout."`
}

func (c *sampleCommand) Help() string {
	return `Example:
  caper sample out/bench    # short for: caper sample write out/bench

Writes a benchmark in Spider layout (splits train, dev, test, newwords) and rollouts/SPLIT.jsonl, candidates of simulated writers.`
}

// Validate checks the flags.
func (c *sampleCommand) Validate() error { return checkNumber("--samples", c.Samples, 1, 1000) }

func (c *sampleCommand) Run(ctx context.Context) error {
	o := sample.DefaultOptions()
	o.Seed = c.Seed
	bench, rollouts, err := writeSample(ctx, c.Dir, o, c.Samples)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(map[string]any{"benchmark": bench, "rollouts": rollouts})
	}
	fmt.Fprintf(os.Stderr, "%d databases of %d rows in %s\n", bench.Databases, bench.Rows, c.Dir)
	for _, split := range sample.Splits {
		fmt.Fprintf(os.Stderr, "  %-9s %5d questions, %6d simulated rollouts\n", split, bench.Questions[split], rollouts.Rollouts[split])
	}
	return nil
}

// writeSample writes the benchmark and simulated rollouts for all its splits: both or
// nothing.
func writeSample(ctx context.Context, dir string, o sample.Options, samples int) (sample.Summary, sample.RolloutSummary, error) {
	bench, err := sample.Write(ctx, dir, o)
	if err != nil {
		return bench, sample.RolloutSummary{}, err
	}
	defer data.Temporary(dir)()
	ro := sample.DefaultRolloutOptions()
	ro.Seed, ro.Samples = o.Seed, samples
	rollouts, err := sample.WriteRollouts(ctx, dir, ro)
	if err != nil {
		os.RemoveAll(dir)
	}
	return bench, rollouts, err
}
