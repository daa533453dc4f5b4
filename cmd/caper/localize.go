package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"caper/data"
	"caper/eval"
	"caper/train/prm"
	"caper/train/run"
)

type localizeCommand struct {
	Model      string `help:"Reward model folder." required:"" type:"path"`
	Tuples     files  `help:"Tuple files whose faults are to be found." required:"" placeholder:"FILE..."`
	Baselines  bool   `help:"Compare with simple rules, fitted on the training tuples."`
	Training   files  `help:"Training tuples for the baselines; default: train.tuples of the run that the model belongs to." placeholder:"FILE..."`
	Balanced   bool   `help:"Give every clause kind the same weight."`
	modelFlags `embed:""`
	JSON       bool `help:"Print the result as JSON on stdout."`
}

func (c *localizeCommand) Help() string {
	return `Example:
  caper localize --model runs/tiny/model --tuples test.jsonl --baselines --balanced --json`
}

// Validate checks the flags.
func (c *localizeCommand) Validate() error { return c.modelFlags.check() }

func (c *localizeCommand) Run(ctx context.Context) error {
	faults, err := readFaults(ctx, c.Tuples)
	if err != nil {
		return err
	}
	if len(faults) == 0 {
		return fmt.Errorf("%s: no faults: give tuples with root_clause true, as caper annotate writes them", strings.Join(c.Tuples, ", "))
	}
	var baselines []eval.Baseline
	if c.Baselines {
		training, err := c.trainingFaults(ctx)
		if err != nil {
			return err
		}
		baselines = eval.FitBaselines(training)
	}
	scores, err := c.scoreFaults(ctx, c.Model, faults)
	if err != nil {
		return err
	}
	result := eval.Localize(faults, scores, baselines, eval.LocalizeOptions{Balanced: c.Balanced})
	if c.JSON {
		return printJSON(result)
	}
	printLocalization(result)
	return nil
}

// trainingFaults reads the tuples that the baselines may learn from. Without any,
// the rules that need them have no preference.
func (c *localizeCommand) trainingFaults(ctx context.Context) ([]eval.Fault, error) {
	paths := c.Training
	if len(paths) == 0 {
		config := filepath.Join(filepath.Dir(filepath.Clean(c.Model)), run.ConfigName)
		if run, err := prm.LoadConfig(config, nil); err == nil {
			paths = run.Train.Tuples
		}
	}
	if len(paths) == 0 {
		fmt.Fprintln(os.Stderr, "no training tuples (--training): frequent, lexical and logistic have nothing to learn from")
		return nil, nil
	}
	faults, err := readFaults(ctx, paths)
	if err != nil {
		return nil, fmt.Errorf("training tuples of the baselines: %w; name them with --training", err)
	}
	return faults, nil
}

func readFaults(ctx context.Context, paths []string) ([]eval.Fault, error) {
	var all []eval.Fault
	for _, path := range paths {
		faults, err := eval.Faults(data.ReadTuples(path))
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		all = append(all, faults...)
	}
	return all, nil
}

func (f *modelFlags) scoreFaults(ctx context.Context, dir string, faults []eval.Fault) ([][]float64, error) {
	scorer, err := f.scorer(dir)
	if err != nil {
		return nil, err
	}
	return eval.ScoreFaults(ctx, scorer, faults, nil)
}

func printLocalization(r eval.Localization) {
	w := tabwriter.NewWriter(os.Stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s of %s\tTop-1\t95 %%\tMRR\t95 %%\t\n", counted(r.Count, "fault"), counted(r.Questions, "question"))
	row := func(name string, m eval.Measure) {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f-%.1f\t%.1f\t%.1f-%.1f\t\n", name, 100*m.Top1, 100*m.Top1Interval[0], 100*m.Top1Interval[1],
			100*m.MRR, 100*m.MRRInterval[0], 100*m.MRRInterval[1])
	}
	row("Clause-PRM", r.Measure)
	for _, name := range []string{eval.Random, eval.First, eval.Longest, eval.Frequent, eval.Lexical, eval.Logistic} {
		if b, ok := r.Baselines[name]; ok {
			row(name, b.Measure)
		}
	}
	w.Flush()
}
