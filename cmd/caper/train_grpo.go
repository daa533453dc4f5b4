package main

import (
	"context"
	"os"

	"caper/solve"
	"caper/train/grpo"
	"caper/train/run"
)

type trainGRPOCommand struct {
	trainFlags `embed:""`
}

func (c *trainGRPOCommand) Help() string {
	return `Example:
  caper train grpo --config configs/grpo-tiny.toml model.path=runs/sft/model reward.model=runs/prm/model train.bench=bench train.out=runs/grpo
  caper train grpo --config configs/grpo-tiny.toml reward.kind=sparse model.path=runs/sft/model train.bench=bench train.out=runs/sparse

The run folder holds config.toml, metrics.jsonl, rollouts.jsonl (answers of some steps, with verdicts, scores and advantages), checkpoints/step-N and, when done, model/, the best by validation, and last/. docs/policy.md has the method and its settings.`
}

func (c *trainGRPOCommand) Run(ctx context.Context) error {
	return train(&c.trainFlags, training[grpo.Config, grpo.Outcome]{
		load: grpo.LoadConfig,
		out:  func(config grpo.Config) string { return config.Train.Out },
		run:  func(config grpo.Config, o run.Options) (grpo.Outcome, error) { return trainGRPO(ctx, config, o) },
		tell: func(o grpo.Outcome) string {
			return trained(o.ModelDir, o.Steps, best("EX", o.BestEX, o.BestStep), o.Stopped)
		},
	})
}

// trainGRPO runs a training with its progress on stderr.
func trainGRPO(ctx context.Context, config grpo.Config, o run.Options) (grpo.Outcome, error) {
	progress, log, done := run.NewProgress(os.Stderr)
	defer done()
	o.Log, o.Progress = log, progress
	return grpo.Train(ctx, config, grpo.Options{Options: o, Extract: solve.ExtractSQL})
}
