package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"caper/solve"
	"caper/train/grpo"
	"caper/train/run"
	"caper/train/settings"
)

type trainGRPOCommand struct {
	Config      string   `help:"TOML file; see configs/." type:"path" placeholder:"FILE"`
	Overrides   []string `arg:"" optional:"" help:"section.key=value, over the file: model.path=DIR train.bench=DIR train.out=DIR reward.model=DIR"`
	PrintConfig bool     `help:"Print the resolved configuration and stop."`
	Resume      bool     `help:"Go on from the newest checkpoint under train.out."`
	Profile     string   `help:"Measure the steps: trace.json (ui.perfetto.dev), operators.txt, cpu.pprof and memory.pprof." type:"path" placeholder:"DIR"`
	JSON        bool     `help:"Print the outcome as JSON on stdout."`
	deviceFlag  `embed:""`
	runFlags    `embed:""`
}

func (c *trainGRPOCommand) Help() string {
	return `Example:
  caper train grpo --config configs/grpo-tiny.toml model.path=runs/sft/model reward.model=runs/prm/model train.bench=bench train.out=runs/grpo
  caper train grpo --config configs/grpo-tiny.toml reward.kind=sparse model.path=runs/sft/model train.bench=bench train.out=runs/sparse

The run folder holds config.toml, metrics.jsonl, rollouts.jsonl (answers of some steps, with verdicts, scores and advantages), checkpoints/step-N and, when done, model/, the best by validation, and last/. docs/policy.md has the method and its settings.`
}

func (c *trainGRPOCommand) Run(ctx context.Context) error {
	config, err := grpo.LoadConfig(c.Config, c.Overrides)
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
	outcome, err := trainGRPO(ctx, config, run.Options{Resume: c.Resume, Profile: c.Profile, Device: device})
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
		fmt.Fprintf(os.Stderr, ", validation EX %.1f %% at step %d", 100*outcome.BestEX, outcome.BestStep)
	}
	if outcome.Stopped != "" {
		fmt.Fprintf(os.Stderr, ", stopped: %s", outcome.Stopped)
	}
	fmt.Fprintln(os.Stderr, ")")
	return nil
}

func (c *trainGRPOCommand) savesWhenInterrupted() {}

// trainGRPO runs a training with its progress on stderr.
func trainGRPO(ctx context.Context, config grpo.Config, o run.Options) (grpo.Outcome, error) {
	progress, log, done := run.NewProgress(os.Stderr)
	defer done()
	o.Log, o.Progress = log, progress
	return grpo.Train(ctx, config, grpo.Options{Options: o, Extract: solve.ExtractSQL})
}
