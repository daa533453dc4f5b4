package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"caper/configs"
	"caper/data/sample"
	"caper/eval"
	"caper/report"
	"caper/train/prm"
	"caper/train/run"
)

// variant is one way to annotate and train. The first is the method itself in full.
// The others train shorter, all alike: the method again, and with a part left out.
type variant struct {
	name, note  string
	propagation bool
	overrides   []string
}

// ablationSteps is the length of the short runs, in optimiser steps.
const ablationSteps = "train.max_steps=150"

var (
	method      = variant{name: "default", propagation: true}
	shortMethod = variant{name: "default, short", note: "the same, with as few steps as the ablations", propagation: true,
		overrides: []string{ablationSteps}}
	withoutPropagation = variant{name: "no-propagation", note: "short, annotated with --no-propagation: only the clause that holds the root cause makes a tuple",
		overrides: []string{ablationSteps}}
	withoutMargin = variant{name: "margin=none", note: "short, trained with loss.margin=none: every pair weighs the same", propagation: true,
		overrides: []string{ablationSteps, "loss.margin=none"}}
)

// folder is where a variant's run lies.
func (d *demo) folder(v variant) string {
	return d.path(strings.NewReplacer(", ", "-", "=", "-").Replace(v.name))
}

// rewardModel is the Clause-PRM of the method itself.
func (d *demo) rewardModel() string { return filepath.Join(d.folder(d.size.variants[0]), "model") }

// tests are the splits on which faults are localised.
var tests = []struct{ split, name string }{
	{sample.Test, "databases never seen, known words"},
	{sample.NewWords, "databases of words never seen"},
}

func (d *demo) trainVariants(ctx context.Context) error {
	for _, v := range d.size.variants {
		started := time.Now()
		d.log.Info("training", "variant", v.name)
		r, err := d.trainReward(ctx, d.folder(v), d.tuples(sample.Train, v.propagation), d.seed, slices.Concat(d.size.prm, v.overrides))
		if err != nil {
			return err
		}
		d.timed("training: "+v.name, started)
		r.Name, r.Note = v.name, v.note
		d.page.Runs = append(d.page.Runs, r)
	}
	return nil
}

// trainReward trains a Clause-PRM on a file of tuples.
func (d *demo) trainReward(ctx context.Context, out, tuples string, seed uint64, overrides []string) (r report.Run, err error) {
	const file = "prm-tiny.toml"
	text, err := configs.Files.ReadFile(file)
	if err != nil {
		return r, err
	}
	if r.Config, err = prm.ParseConfig(text, "configs/"+file, append([]string{
		"train.tuples=" + tuples, "train.out=" + out, seedOverride(seed)}, overrides...)); err != nil {
		return r, err
	}
	outcome, err := trainPRM(ctx, r.Config, run.Options{})
	if err != nil {
		return r, err
	}
	r.Outcome = &outcome
	r.Metrics, err = run.ReadMetrics[prm.Metrics](out)
	return r, err
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
		for i, v := range d.size.variants {
			scores, err := demoModels.scoreFaults(ctx, filepath.Join(d.folder(v), "model"), faults)
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
