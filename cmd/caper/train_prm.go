package main

import (
	"context"
	"os"

	"caper/train/prm"
	"caper/train/run"
)

type trainPRMCommand struct {
	trainFlags `embed:""`
}

func (c *trainPRMCommand) Help() string {
	return `Example:
  caper train prm --config configs/prm-tiny.toml train.tuples=tuples.jsonl train.out=runs/tiny train.lr=1e-3

The run folder holds config.toml, metrics.jsonl, checkpoints/step-N and, when done, model/: a folder in Hugging Face layout.`
}

func (c *trainPRMCommand) Run(ctx context.Context) error {
	return train(&c.trainFlags, training[prm.Config, prm.Outcome]{
		load: prm.LoadConfig,
		out:  func(config prm.Config) string { return config.Train.Out },
		run:  func(config prm.Config, o run.Options) (prm.Outcome, error) { return trainPRM(ctx, config, o) },
		tell: func(o prm.Outcome) string {
			return trained(o.ModelDir, o.Steps, best("Top-1", o.BestTop1, o.BestStep), o.Stopped)
		},
	})
}

// trainPRM runs a training with its progress on stderr.
func trainPRM(ctx context.Context, config prm.Config, o run.Options) (prm.Outcome, error) {
	progress, log, done := run.NewProgress(os.Stderr)
	defer done()
	o.Log, o.Progress = log, progress
	return prm.Train(ctx, config, o)
}
