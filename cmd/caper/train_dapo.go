package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"caper/solve"
	"caper/train/curriculum"
	"caper/train/dapo"
	"caper/train/run"
	"caper/train/settings"
)

type trainDAPOCommand struct {
	Config      string   `help:"TOML file; see configs/." type:"path" placeholder:"FILE"`
	Overrides   []string `arg:"" optional:"" help:"section.key=value, over the file: model.path=DIR train.bench=DIR train.out=DIR"`
	PrintConfig bool     `help:"Print the resolved configuration and stop."`
	PlanOnly    bool     `help:"Make the next stage's sampling table, show it, and stop; --resume goes on from it."`
	Resume      bool     `help:"Go on with the training under train.out."`
	JSON        bool     `help:"Print the outcome as JSON on stdout."`
	deviceFlag  `embed:""`
}

func (c *trainDAPOCommand) Help() string {
	return `Example:
  caper train dapo --config configs/dapo-tiny.toml model.path=runs/sft/model train.bench=bench train.out=runs/dapo --plan-only
  caper train dapo --config configs/dapo-tiny.toml model.path=runs/sft/model train.bench=bench train.out=runs/dapo --resume

Asks the policy every question, makes harder siblings of those that it always answers right and easier ones of those that it never does, and trains it on what lies between;
then once more on what remains hard. The run folder holds curriculum-1 and curriculum-2, with table.jsonl and, for people, table.txt, and stage-1 and stage-2, run folders as of
caper train grpo. docs/policy.md has the method and its settings.`
}

func (c *trainDAPOCommand) Run(ctx context.Context) error {
	config, err := dapo.LoadConfig(c.Config, c.Overrides)
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
	progress, log, done := run.NewProgress(os.Stderr)
	defer done()
	o := dapo.Options{PlanOnly: c.PlanOnly, Planned: c.show}
	o.Extract, o.Options.Options = solve.ExtractSQL, run.Options{Resume: c.Resume, Device: device, Log: log, Progress: progress}
	outcome, err := dapo.Train(ctx, config, o)
	if errors.As(err, new(*settings.Error)) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(outcome)
	}
	if outcome.ModelDir != "" {
		fmt.Fprintf(os.Stderr, "model: %s\n", outcome.ModelDir)
	}
	return nil
}

// show prints a table that was just made.
func (c *trainDAPOCommand) show(stage int, t *curriculum.Table, folder string) {
	fmt.Fprintf(os.Stderr, "curriculum of stage %d (%s):\n%s\n", stage, filepath.Join(folder, curriculum.TableName), t.Text())
}

func (c *trainDAPOCommand) savesWhenInterrupted() {}
