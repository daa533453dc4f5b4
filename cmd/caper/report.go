package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"caper/report"
	"caper/report/tensorboard"
)

type reportCommand struct {
	Page        reportPageCommand        `cmd:"" default:"withargs" help:"Write a self-contained HTML page of runs; the default."`
	TensorBoard reportTensorBoardCommand `cmd:"" name:"tensorboard" help:"Write the metrics of runs as TensorBoard event files."`
}

type reportPageCommand struct {
	Folders  []string `arg:"" name:"run" help:"Run folders: config.toml and metrics.jsonl. Several are drawn over each other." type:"path"`
	Localize []string `help:"Result of caper localize --json on the reward model; the natural and the balanced result of one test share its NAME." placeholder:"[NAME=]FILE" sep:"none"`
	Verdicts []string `help:"Verdicts of caper eval ex on answers of the policy run RUN." placeholder:"RUN=FILE" sep:"none"`
	Out      string   `help:"File to write; default: report.html in the (first) run folder." type:"path"`
}

func (c *reportPageCommand) Help() string {
	return `Example:
  caper localize --model runs/tiny/model --tuples test.jsonl --baselines --balanced --json > balanced.json
  caper report runs/tiny --localize test=balanced.json    # short for: caper report page runs/tiny ...
  caper report runs/clause runs/sparse --verdicts clause=clause.verdicts.jsonl --verdicts sparse=sparse.verdicts.jsonl`
}

func (c *reportPageCommand) Run() error {
	page, err := report.RunPage(c.Folders, c.Localize, c.Verdicts)
	if err != nil {
		return err
	}
	out := c.Out
	if out == "" {
		out = filepath.Join(c.Folders[0], "report.html")
	}
	if err := report.Write(out, page); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "report: %s\n", out)
	return nil
}

type reportTensorBoardCommand struct {
	Folders []string      `arg:"" name:"run" help:"Run folders with metrics.jsonl." type:"path"`
	Follow  time.Duration `help:"Go on with one run that is under way, looking for new lines this often, until ctrl-C: 5s." placeholder:"DURATION"`
}

func (c *reportTensorBoardCommand) Help() string {
	return `Example:
  caper report tensorboard runs/clause runs/sparse && tensorboard --logdir runs
  caper report tensorboard runs/clause --follow 5s

The event file is tensorboard/` + tensorboard.FileName + ` in each run folder.`
}

// Validate checks the flags.
func (c *reportTensorBoardCommand) Validate() error {
	if c.Follow < 0 || c.Follow > 0 && len(c.Folders) != 1 {
		return fmt.Errorf("--follow %v: must be a time, and follows one run", c.Follow)
	}
	return nil
}

func (c *reportTensorBoardCommand) Run(ctx context.Context) error {
	for _, run := range c.Folders {
		dir := filepath.Join(run, "tensorboard")
		if c.Follow > 0 {
			return tensorboard.Follow(ctx, run, dir, c.Follow)
		}
		lines, err := tensorboard.Convert(run, dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", filepath.Join(dir, tensorboard.FileName), counted(lines, "line"))
	}
	return nil
}
