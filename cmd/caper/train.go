package main

import (
	"errors"
	"fmt"
	"os"

	"caper/train/run"
	"caper/train/settings"
)

// trainFlags are those of every training.
type trainFlags struct {
	Config      string   `help:"TOML file; see configs/." type:"path" placeholder:"FILE"`
	Overrides   []string `arg:"" optional:"" help:"section.key=value, over the file, as train.out=DIR train.lr=1e-3; --print-config lists the keys."`
	PrintConfig bool     `help:"Print the resolved configuration and stop."`
	Resume      bool     `help:"Go on from the newest checkpoint under train.out."`
	Profile     string   `help:"Measure the steps: trace.json (ui.perfetto.dev), operators.txt, cpu.pprof and memory.pprof." type:"path" placeholder:"DIR"`
	JSON        bool     `help:"Print the outcome as JSON on stdout."`
	deviceFlag  `embed:""`
	runFlags    `embed:""`
}

func (c *trainFlags) savesWhenInterrupted() {}

// training is what the trainers differ in: configuration C and outcome O.
type training[C interface{ Text() string }, O any] struct {
	load func(path string, overrides []string) (C, error)
	out  func(C) string // the run folder
	run  func(C, run.Options) (O, error)
	tell func(O) string // the outcome in words
}

// train loads the configuration, trains, and says what came of it.
func train[C interface{ Text() string }, O any](c *trainFlags, t training[C, O]) error {
	config, err := t.load(c.Config, c.Overrides)
	if err != nil {
		return wrongUse(err)
	}
	if c.PrintConfig {
		_, err := fmt.Print(config.Text())
		return err
	}
	device, err := c.open()
	if err != nil {
		return err
	}
	stop, err := c.start(t.out(config))
	if err != nil {
		return err
	}
	defer stop()
	outcome, err := t.run(config, run.Options{Resume: c.Resume, Profile: c.Profile, Device: device})
	if err != nil {
		return wrongUse(err)
	}
	if c.JSON {
		return printJSON(outcome)
	}
	fmt.Fprintln(os.Stderr, t.tell(outcome))
	return nil
}

// wrongUse makes a mistake in a configuration a usageError.
func wrongUse(err error) error {
	if errors.As(err, new(*settings.Error)) {
		return usageError{err}
	}
	return err
}

// trained says where a training's result lies.
func trained(model string, steps int, validation, stopped string) string {
	text := fmt.Sprintf("model: %s (%s", model, counted(steps, "step"))
	if validation != "" {
		text += ", validation " + validation
	}
	if stopped != "" {
		text += ", stopped: " + stopped
	}
	return text + ")"
}

// best is a share of the best validation, in words; nothing where there was none.
func best(name string, share float64, step int) string {
	if step == 0 {
		return ""
	}
	return fmt.Sprintf("%s %.1f %% at step %d", name, 100*share, step)
}
