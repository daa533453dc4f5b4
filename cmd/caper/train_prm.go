package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"caper/train/prm"
	"caper/train/run"
	"caper/train/settings"
)

type trainPRMCommand struct {
	Config      string   `help:"TOML file; see configs/." type:"path" placeholder:"FILE"`
	Overrides   []string `arg:"" optional:"" help:"section.key=value, over the file: train.tuples=F train.out=DIR train.lr=1e-3"`
	PrintConfig bool     `help:"Print the resolved configuration and stop."`
	Resume      bool     `help:"Go on from the newest checkpoint under train.out."`
	Profile     string   `help:"Measure the steps: trace.json (ui.perfetto.dev), operators.txt, cpu.pprof and memory.pprof." type:"path" placeholder:"DIR"`
	JSON        bool     `help:"Print the outcome as JSON on stdout."`
	deviceFlag  `embed:""`
	runFlags    `embed:""`
}

func (c *trainPRMCommand) Help() string {
	return `Example:
  caper train prm --config configs/prm-tiny.toml train.tuples=tuples.jsonl train.out=runs/tiny train.lr=1e-3

The run folder holds config.toml, metrics.jsonl, checkpoints/step-N and, when done, model/: a folder in Hugging Face layout.`
}

func (c *trainPRMCommand) Run(ctx context.Context) error {
	config, err := prm.LoadConfig(c.Config, c.Overrides)
	if errors.As(err, new(*settings.Error)) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if c.PrintConfig {
		_, err := fmt.Print(config.Text())
		return err
	}
	device, err := c.open()
	if err != nil {
		return err
	}
	stop, err := c.start(config.Train.Out)
	if err != nil {
		return err
	}
	defer stop()
	outcome, err := trainPRM(ctx, config, run.Options{Resume: c.Resume, Profile: c.Profile, Device: device})
	if errors.As(err, new(*settings.Error)) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(outcome)
	}
	fmt.Fprintf(os.Stderr, "model: %s (%s", outcome.ModelDir, counted(outcome.Steps, "step"))
	if outcome.BestStep > 0 {
		fmt.Fprintf(os.Stderr, ", validation Top-1 %.1f %% at step %d", 100*outcome.BestTop1, outcome.BestStep)
	}
	if outcome.Stopped != "" {
		fmt.Fprintf(os.Stderr, ", stopped: %s", outcome.Stopped)
	}
	fmt.Fprintln(os.Stderr, ")")
	return nil
}

func (c *trainPRMCommand) savesWhenInterrupted() {}

// trainPRM runs a training with its progress on stderr.
func trainPRM(ctx context.Context, config prm.Config, o run.Options) (prm.Outcome, error) {
	progress, log, done := run.NewProgress(os.Stderr)
	defer done()
	o.Log, o.Progress = log, progress
	return prm.Train(ctx, config, o)
}
