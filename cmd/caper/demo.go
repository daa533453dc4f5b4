package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"caper/annotate"
	"caper/configs"
	"caper/data"
	"caper/data/sample"
	"caper/eval"
	"caper/train"
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

// demo is the demonstration under way: everything lies under dir.
type demo struct {
	dir   string
	seed  uint64
	log   *slog.Logger
	bench *data.Benchmark
}

// variant is one way to annotate and train; the first is the method itself, the
// others leave out a part of it.
type variant struct {
	name        string
	propagation bool
	overrides   []string
}

var variants = []variant{
	{"default", true, nil},
	{"no-propagation", false, nil},
	{"margin-none", true, []string{"loss.margin=none"}},
}

func (c *demoCommand) Run(ctx context.Context) error {
	d := &demo{dir: c.Out, seed: c.Seed, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if entries, err := os.ReadDir(d.dir); err == nil && len(entries) > 0 {
		return usageError{fmt.Errorf("%s is not empty: remove it or choose another --out", d.dir)}
	}
	return d.run(ctx)
}

func (d *demo) run(ctx context.Context) error {
	if err := d.sample(); err != nil {
		return err
	}
	defer d.bench.Close()
	for _, split := range []string{sample.Train, sample.Test, sample.NewWords} {
		if _, err := d.annotate(ctx, split, true); err != nil {
			return err
		}
	}
	if _, err := d.annotate(ctx, sample.Train, false); err != nil {
		return err
	}
	for _, v := range variants {
		if _, err := d.train(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// sample writes the benchmark and its simulated rollouts.
func (d *demo) sample() error {
	bench, rollouts, err := writeSample(d.path("bench"), d.seed, sample.DefaultRolloutOptions().Samples)
	if err != nil {
		return err
	}
	d.log.Info("benchmark", "databases", bench.Databases, "questions", bench.Questions, "simulated_rollouts", rollouts.Rollouts)
	d.bench, err = data.OpenBenchmark(d.path("bench"), "spider")
	return err
}

// tuples is where the tuples of a split lie.
func (d *demo) tuples(split string, propagation bool) string {
	if !propagation {
		split += "-no-propagation"
	}
	return d.path("tuples", split+".jsonl")
}

func (d *demo) annotate(ctx context.Context, split string, propagation bool) (annotate.Summary, error) {
	o := annotate.DefaultOptions()
	o.Propagation, o.Seed = propagation, d.seed
	out := d.tuples(split, propagation)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return annotate.Summary{}, err
	}
	started := time.Now()
	rollouts := readRollouts([]string{sample.RolloutPath(d.path("bench"), split)}, d.bench, split, 0, 1)
	summary, err := annotateTo(ctx, d.bench, rollouts, o, split, out)
	if err != nil {
		return summary, err
	}
	d.log.Info("annotated", "split", split, "propagation", propagation, "rollouts", summary.Rollouts,
		"tuples", summary.Tuples, "seconds", time.Since(started).Round(time.Second/10).Seconds())
	return summary, nil
}

func (d *demo) train(ctx context.Context, v variant) (train.Outcome, error) {
	text, err := configs.Files.ReadFile("prm-tiny.toml")
	if err != nil {
		return train.Outcome{}, err
	}
	overrides := append([]string{
		"train.tuples=" + d.tuples(sample.Train, v.propagation), "train.out=" + d.path(v.name), fmt.Sprintf("train.seed=%d", d.seed),
	}, v.overrides...)
	config, err := train.ParseConfig(text, "configs/prm-tiny.toml", overrides)
	if err != nil {
		return train.Outcome{}, err
	}
	d.log.Info("training", "variant", v.name)
	return trainPRM(ctx, config, false)
}

var _ = eval.Localize
