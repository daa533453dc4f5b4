package main

import (
	"context"
	"fmt"
	"os"

	"caper/benchmarks/kernels"
	"caper/engine"
)

type benchKernelsCommand struct {
	Model         string `help:"Published size whose shapes are measured: 0.8B, 2B, 4B, 9B, 27B, qwen3-0.6B to qwen3-32B." default:"0.8B"`
	Layers        int    `help:"Only so many of its layers, from the first; 0: all. Four of Qwen3.5 hold each kind." default:"4"`
	Prompt        int    `help:"Tokens of the prompt." default:"1536"`
	Answer        int    `help:"Tokens of each sample after it." default:"64"`
	Samples       int    `help:"Samples that share the prompt." default:"8"`
	Repeats       int    `help:"Steps that are measured." default:"5"`
	Checkpointing string `help:"Of whole steps: none, selective or full." default:"none" enum:"none,selective,full"`
	Shapes        bool   `help:"Single operators at the sizes of published comparisons, with what others state, in place of training steps."`
	Scale         int    `help:"Divide widths, vocabulary and, of single operators, rows by it: to try the command on a small machine." default:"1"`
	Threads       int    `help:"On the processor; 0: one per core." default:"0"`
	JSON          bool   `help:"Print JSON on stdout."`
	deviceFlag    `embed:""`
}

func (c *benchKernelsCommand) Help() string {
	return `Example:
  caper bench kernels --model 9B --layers 4
  caper bench kernels --device cpu --layers 4 --prompt 256 --samples 2
  caper bench kernels --shapes --device cuda

Runs training steps with random weights and tokens: the time of every operator in every phase, what it reaches of the
machine's copy and product rates, and whole steps with the prompt computed once and once a sample.`
}

// Validate checks the flags.
func (c *benchKernelsCommand) Validate() error {
	for _, f := range []struct {
		name        string
		value, most int
	}{{"--prompt", c.Prompt, 1 << 20}, {"--answer", c.Answer, 1 << 16}, {"--samples", c.Samples, 1 << 10}, {"--repeats", c.Repeats, 1000}, {"--scale", c.Scale, 1 << 10}} {
		if err := checkNumber(f.name, f.value, 1, f.most); err != nil {
			return err
		}
	}
	return checkThreads("--threads", c.Threads)
}

func (c *benchKernelsCommand) Run(ctx context.Context) error {
	device, err := c.open()
	if err != nil {
		return err
	}
	if device == nil {
		device = engine.CPU(c.Threads)
	}
	if c.Shapes {
		report, err := kernels.MeasureShapes(ctx, device, c.Scale, c.Repeats)
		if err != nil {
			return fmt.Errorf("bench kernels: %w", err)
		}
		if c.JSON {
			return printJSON(report)
		}
		return report.WriteMarkdown(os.Stderr)
	}
	mode, err := engine.ParseCheckpointing(c.Checkpointing)
	if err != nil {
		return err
	}
	report, err := kernels.Measure(ctx, kernels.Options{
		Device: device, Model: c.Model, Layers: c.Layers, Scale: c.Scale, Prompt: c.Prompt, Answer: c.Answer, Samples: c.Samples, Repeats: c.Repeats, Checkpointing: mode,
	})
	if err != nil {
		return fmt.Errorf("bench kernels: %w", err)
	}
	if c.JSON {
		return printJSON(report)
	}
	return report.WriteTable(os.Stderr)
}
