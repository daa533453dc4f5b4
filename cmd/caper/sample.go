package main

import (
	"fmt"
	"os"

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
  caper sample out/bench

Writes a benchmark in Spider layout (splits train, dev, test, newwords) and rollouts/SPLIT.jsonl, candidates of simulated writers.`
}

func (c *sampleCommand) Run() error {
	if c.Samples <= 0 {
		return usageError{fmt.Errorf("--samples %d: must be above 0", c.Samples)}
	}
	bench, rollouts, err := writeSample(c.Dir, c.Seed, c.Samples)
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

// writeSample writes the benchmark and simulated rollouts for all its splits.
func writeSample(dir string, seed uint64, samples int) (sample.Summary, sample.RolloutSummary, error) {
	o := sample.DefaultOptions()
	o.Seed = seed
	bench, err := sample.Write(dir, o)
	if err != nil {
		return bench, sample.RolloutSummary{}, err
	}
	ro := sample.DefaultRolloutOptions()
	ro.Seed, ro.Samples = seed, samples
	rollouts, err := sample.WriteRollouts(dir, ro)
	return bench, rollouts, err
}
