package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"caper/annotate"
	"caper/configs"
	"caper/data"
	"caper/data/sample"
	"caper/eval"
	"caper/report"
	"caper/train/prm"
	"caper/train/run"
)

type demoCommand struct {
	Out  string `help:"Folder to write; must not exist yet or be empty." default:"out/demo" type:"path"`
	Seed uint64 `help:"Seed of benchmark, rollouts, mutants and training." default:"1"`
}

func (c *demoCommand) Help() string {
	return `Example:
  caper demo --out out/demo

Takes a few minutes on two cores and ends in DIR/report.html; DIR/default/model is the trained Clause-PRM in Hugging Face layout.`
}

func (c *demoCommand) Run(ctx context.Context) error {
	if entries, err := os.ReadDir(c.Out); err == nil && len(entries) > 0 {
		return usageError{fmt.Errorf("%s is not empty: remove it or choose another --out", c.Out)}
	}
	d := &demo{dir: c.Out, seed: c.Seed, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	err := d.run(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("interrupted: %s is not complete: remove it and start again", c.Out)
	}
	return err
}

// queryInstructions is enough for every honest query of the benchmark and keeps the few
// runaway ones, which are there on purpose, from costing minutes: about a second each.
// Unlike a second it makes the same tuples on a machine that is busy or slow; the time
// limit behind it is for what takes no instructions.
const (
	queryInstructions = 100_000_000
	queryTimeout      = 20 * time.Second
)

// demo is the demonstration under way: everything lies under dir, what was done is
// told on page.
type demo struct {
	dir   string
	seed  uint64
	log   *slog.Logger
	bench *data.Benchmark
	page  report.Page
}

// variant is one way to annotate and train. The first is the method itself in full.
// The others train shorter, all alike: the method again, and with a part left out.
type variant struct {
	name, note  string
	propagation bool
	overrides   []string
}

// ablationSteps is the length of the short runs, in optimiser steps.
const ablationSteps = "train.max_steps=150"

var variants = []variant{
	{name: "default", propagation: true},
	{name: "default, short", note: "the same, with as few steps as the ablations", propagation: true,
		overrides: []string{ablationSteps}},
	{name: "no-propagation", note: "short, annotated with --no-propagation: only the clause that holds the root cause makes a tuple",
		overrides: []string{ablationSteps}},
	{name: "margin=none", note: "short, trained with loss.margin=none: every pair weighs the same", propagation: true,
		overrides: []string{ablationSteps, "loss.margin=none"}},
}

// folder is where a variant's run lies.
func (d *demo) folder(v variant) string {
	return d.path(strings.NewReplacer(", ", "-", "=", "-").Replace(v.name))
}

// tests are the splits on which faults are localised.
var tests = []struct{ split, name string }{
	{sample.Test, "databases never seen, known words"},
	{sample.NewWords, "databases of words never seen"},
}

func (d *demo) run(ctx context.Context) error {
	if err := d.sample(ctx); err != nil {
		return err
	}
	defer d.bench.Close()
	for _, a := range []struct {
		split       string
		propagation bool
	}{{sample.Train, true}, {sample.Train, false}, {sample.Test, true}, {sample.NewWords, true}} {
		if err := d.annotate(ctx, a.split, a.propagation); err != nil {
			return err
		}
	}
	for _, v := range variants {
		if err := d.train(ctx, v); err != nil {
			return err
		}
	}
	if err := d.localize(ctx); err != nil {
		return err
	}
	return d.report()
}

func (d *demo) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// tuples is where the tuples of a split lie.
func (d *demo) tuples(split string, propagation bool) string {
	if !propagation {
		split += "-no-propagation"
	}
	return d.path("tuples", split+".jsonl")
}

// timed notes how long a step took, for the report.
func (d *demo) timed(name string, started time.Time) {
	d.page.Timings = append(d.page.Timings, report.Timing{Name: name, Duration: time.Since(started)})
}

// sample writes the benchmark and its simulated rollouts.
func (d *demo) sample(ctx context.Context) error {
	started := time.Now()
	bench, rollouts, err := writeSample(ctx, d.path("bench"), d.seed, sample.DefaultRolloutOptions().Samples)
	if err != nil {
		return err
	}
	d.timed("benchmark and simulated rollouts", started)
	d.describe(bench, rollouts)
	d.log.Info("benchmark", "databases", bench.Databases, "questions", bench.Questions, "simulated_rollouts", rollouts.Rollouts)
	if d.bench, err = data.OpenBenchmark(d.path("bench"), "spider"); err != nil {
		return err
	}
	d.bench.Limits.Instructions, d.bench.Limits.Timeout = queryInstructions, queryTimeout
	return nil
}

func (d *demo) annotate(ctx context.Context, split string, propagation bool) error {
	started := time.Now()
	out := d.tuples(split, propagation)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	o := annotate.DefaultOptions()
	o.Propagation, o.Seed = propagation, d.seed
	rollouts := readRollouts([]string{sample.RolloutPath(d.path("bench"), split)}, d.bench, split, nil)
	summary, err := annotateTo(ctx, d.bench, rollouts, o, split, annotate.Output{Path: out})
	if err != nil {
		return err
	}
	name := filepath.Base(out)
	d.timed("annotation: "+name, started)
	d.page.Annotations = append(d.page.Annotations, report.Annotation{Name: name, Summary: summary})
	d.log.Info("annotated", "file", name, "rollouts", summary.Rollouts, "tuples", summary.Tuples)
	return nil
}

func (d *demo) train(ctx context.Context, v variant) error {
	started := time.Now()
	text, err := configs.Files.ReadFile("prm-tiny.toml")
	if err != nil {
		return err
	}
	config, err := prm.ParseConfig(text, "configs/prm-tiny.toml", append([]string{
		"train.tuples=" + d.tuples(sample.Train, v.propagation),
		"train.out=" + d.folder(v),
		fmt.Sprintf("train.seed=%d", d.seed),
	}, v.overrides...))
	if err != nil {
		return err
	}
	d.log.Info("training", "variant", v.name)
	outcome, err := trainPRM(ctx, config, run.Options{})
	if err != nil {
		return err
	}
	metrics, err := run.ReadMetrics[prm.Metrics](config.Train.Out)
	if err != nil {
		return err
	}
	d.timed("training: "+v.name, started)
	d.page.Runs = append(d.page.Runs, report.Run{Name: v.name, Note: v.note, Config: config, Outcome: &outcome, Metrics: metrics})
	return nil
}

// localize finds the faults of the test splits with every variant's model. The
// baselines are fitted on the training tuples of the first.
func (d *demo) localize(ctx context.Context) error {
	training, err := readFaults(ctx, []string{d.tuples(sample.Train, true)})
	if err != nil {
		return err
	}
	baselines := eval.FitBaselines(training)
	for _, test := range tests {
		started := time.Now()
		faults, err := readFaults(ctx, []string{d.tuples(test.split, true)})
		if err != nil {
			return err
		}
		for i, v := range variants {
			scores, err := (&modelFlags{deviceFlag: deviceFlag{"cpu"}}).scoreFaults(ctx, filepath.Join(d.folder(v), "model"), faults)
			if err != nil {
				return err
			}
			natural := eval.Localize(faults, scores, baselines, eval.LocalizeOptions{})
			balanced := eval.Localize(faults, scores, baselines, eval.LocalizeOptions{Balanced: true})
			d.page.Tests = append(d.page.Tests, report.Test{Name: test.name, Run: v.name, Natural: &natural, Balanced: &balanced})
			if i == 0 {
				d.log.Info("localised", "on", test.name, "faults", natural.Count)
				printLocalization(balanced)
			}
			if i == 0 && test.split == sample.Test {
				if err := d.examples(ctx, faults, scores); err != nil {
					return err
				}
			}
		}
		d.timed("localisation: "+test.name, started)
	}
	return nil
}
