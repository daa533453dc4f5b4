package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"caper/data"
	"caper/report"
)

type demoCommand struct {
	Out  string `help:"Folder to write; must not exist yet or be empty." default:"out/demo" type:"path"`
	Seed uint64 `help:"Seed of benchmark, rollouts, mutants and training; further seeds follow it." default:"1"`
	Full bool   `help:"The policy's part at full length with three seeds, and ablations: up to 40 minutes."`
}

func (c *demoCommand) Help() string {
	return `Example:
  caper demo --out out/demo

Takes a few minutes on two cores and ends in DIR/report.html; DIR/default/model is the trained Clause-PRM and DIR/policy/seed-1/clause/last a policy, both in Hugging Face layout.`
}

func (c *demoCommand) Run(ctx context.Context) error {
	if entries, err := os.ReadDir(c.Out); err == nil && len(entries) > 0 {
		return usageError{fmt.Errorf("%s is not empty: remove it or choose another --out", c.Out)}
	}
	d := &demo{dir: c.Out, seed: c.Seed, size: shortDemo(), log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if c.Full {
		d.size = fullDemo()
	}
	err := d.run(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted: %s is not complete: remove it and start again", c.Out)
	}
	return err
}

// demo is the demonstration under way: everything lies under dir, what was done is
// told on page.
//
//	demo_size.go    how much of everything
//	demo_sample.go  the benchmark, simulated candidates, tuples
//	demo_reward.go  Clause-PRMs and their localisation of faults
//	demo_policy.go  policies: by gold, then by reward
//	demo_verify.go  how well policies answer, and which of their answers to take
//	demo_report.go  what the page says beside the results
type demo struct {
	dir   string
	seed  uint64
	size  demoSize
	log   *slog.Logger
	bench *data.Benchmark
	page  report.Page
}

func (d *demo) run(ctx context.Context) error {
	if err := d.sample(ctx); err != nil {
		return err
	}
	defer d.bench.Close()
	for _, stage := range []func(context.Context) error{d.annotateSplits, d.trainVariants, d.localize, d.policies} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return d.report()
}

func (d *demo) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// timed notes how long a step took, for the report.
func (d *demo) timed(name string, started time.Time) {
	d.page.Timings = append(d.page.Timings, report.Timing{Name: name, Duration: time.Since(started)})
}
