package main

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"caper/annotate"
	"caper/data"
	"caper/data/sample"
	"caper/report"
)

// queryInstructions is enough for every honest query of the benchmark and keeps the few
// runaway ones, which are there on purpose, from costing minutes: about a second each.
// Unlike a second it makes the same tuples on a machine that is busy or slow; the time
// limit behind it is for what takes no instructions.
const (
	queryInstructions = 100_000_000
	queryTimeout      = 20 * time.Second
)

// sample writes the benchmark and its simulated rollouts.
func (d *demo) sample(ctx context.Context) error {
	started := time.Now()
	o := d.size.bench
	o.Seed = d.seed
	bench, rollouts, err := writeSample(ctx, d.path("bench"), o, sample.DefaultRolloutOptions().Samples)
	if err != nil {
		return err
	}
	d.timed("benchmark and simulated rollouts", started)
	d.describe(bench, rollouts)
	d.log.Info("benchmark", "databases", bench.Databases, "questions", bench.Questions, "simulated_rollouts", rollouts.Rollouts)
	d.bench, err = openDemoBench(d.path("bench"))
	return err
}

// openDemoBench opens a benchmark with the limits of the demonstration.
func openDemoBench(dir string) (*data.Benchmark, error) {
	bench, err := data.OpenBenchmark(dir, "spider")
	if err == nil {
		bench.Limits.Instructions, bench.Limits.Timeout = queryInstructions, queryTimeout
	}
	return bench, err
}

// annotateSplits annotates the simulated rollouts.
func (d *demo) annotateSplits(ctx context.Context) error {
	type annotation struct {
		split       string
		propagation bool
	}
	var all []annotation
	for _, v := range d.size.variants {
		if a := (annotation{sample.Train, v.propagation}); !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	for _, a := range append(all, annotation{sample.Test, true}, annotation{sample.NewWords, true}) {
		rollouts := readRollouts([]string{sample.RolloutPath(d.path("bench"), a.split)}, d.bench, a.split, nil)
		if err := d.annotate(ctx, d.bench, rollouts, a.split, a.propagation, d.tuples(a.split, a.propagation)); err != nil {
			return err
		}
	}
	return nil
}

// tuples is where the tuples of a split's simulated rollouts lie.
func (d *demo) tuples(split string, propagation bool) string {
	if !propagation {
		split += "-no-propagation"
	}
	return d.path("tuples", split+".jsonl")
}

// annotate annotates rollouts for questions of a split into a file.
func (d *demo) annotate(ctx context.Context, bench *data.Benchmark, rollouts iter.Seq2[data.Rollout, error], split string, propagation bool, out string) error {
	started := time.Now()
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	o := annotate.DefaultOptions()
	o.Propagation, o.Seed = propagation, d.seed
	summary, err := annotateTo(ctx, bench, rollouts, o, split, annotate.Output{Path: out})
	if err != nil {
		return err
	}
	name := filepath.Base(out)
	d.timed("annotation: "+name, started)
	d.page.Annotations = append(d.page.Annotations, report.Annotation{Name: name, Summary: summary})
	d.log.Info("annotated", "file", name, "rollouts", summary.Rollouts, "tuples", summary.Tuples)
	return nil
}
