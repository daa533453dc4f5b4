package main

import (
	"context"
	"os"

	"caper/train/run"
	"caper/train/sft"
)

type trainSFTCommand struct {
	trainFlags `embed:""`
}

func (c *trainSFTCommand) Help() string {
	return `Example:
  caper train sft --config configs/sft-tiny.toml train.bench=bench train.out=runs/sft
  caper train sft --config configs/sft-tiny.toml train.bench=bench train.out=runs/weak train.stop_at_ex=0.6
  caper train sft model.path=Qwen3.5-0.8B lora.rank=16 train.chat=true train.lr=1e-4 train.bench=spider train.rollouts=verdicts.jsonl train.out=runs/lora

The run folder holds config.toml, metrics.jsonl, checkpoints/step-N and, when done, model/: the best by validation, a folder in Hugging Face layout.`
}

func (c *trainSFTCommand) Run(ctx context.Context) error {
	return train(&c.trainFlags, training[sft.Config, sft.Outcome]{
		load: sft.LoadConfig,
		out:  func(config sft.Config) string { return config.Train.Out },
		run:  func(config sft.Config, o run.Options) (sft.Outcome, error) { return trainSFT(ctx, config, o) },
		tell: func(o sft.Outcome) string {
			return trained(o.ModelDir, o.Steps, best("EX", o.BestEX, o.BestStep), o.Stopped)
		},
	})
}

// trainSFT runs a training with its progress on stderr.
func trainSFT(ctx context.Context, config sft.Config, o run.Options) (sft.Outcome, error) {
	progress, log, done := run.NewProgress(os.Stderr)
	defer done()
	o.Log, o.Progress = log, progress
	return sft.Train(ctx, config, o)
}
