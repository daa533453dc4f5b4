// Package run holds what every training shares: the run folder with its configuration,
// metrics, checkpoints and result, the start of a model, the optimiser and its schedule,
// the memory that steps may take, progress and interruption.
//
// A trainer brings its data and its loss. It opens a run (Open), starts the model (Start),
// says how many steps there are and what the largest hold (Begin), and hands its steps to
// Loop. A run is a function of its configuration and its data: the same inputs give the same
// bits, with any number of threads, and one that was stopped and resumed gives the bits of
// one that was not.
package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/gradnorm"
	"caper/model"
)

// Options are the choices that do not change a run's result.
type Options struct {
	// Resume continues from the newest checkpoint under train.out.
	Resume bool
	// Log receives what a reader of the run's log should know.
	Log *slog.Logger
	// Progress is told of every step.
	Progress Progress
	// Device is where the steps run; nil is the processor, with train.threads and
	// train.precision.
	Device engine.Device
	// Profile is a folder for measurements of the steps (profile.go); empty: none.
	Profile string
}

// ErrInterrupted is returned when the context ended before the run did; the last
// step is saved and Options.Resume goes on from it.
var ErrInterrupted = errors.New("interrupted")

// BeforeFirstStep is err, or an ErrInterrupted where err only says that ctx ended.
func BeforeFirstStep(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w before the first step: run the same command again", ErrInterrupted)
	}
	return err
}

// Run is a training under way.
type Run struct {
	Device  engine.Device
	Model   *model.Model
	Params  []*engine.Param // those that are trained
	Moments *adamw.State    // of Params
	Tape    *engine.Tape
	Log     *slog.Logger
	// Total is the number of optimiser steps of the whole run. The trainer sets it
	// before Begin.
	Total int

	sections  Sections
	options   Options
	holder    Holder
	from      string // checkpoint that the run goes on from, "" for none
	metrics   *metricsFile
	operators *engine.Profile // nil without Options.Profile
}

// Open checks the configuration and the run folder, and takes up the state of the newest
// checkpoint there. s is the state of a new run. Nothing is written yet.
func Open(c Sections, s Holder, o Options) (*Run, error) {
	if err := c.checkRun(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Run{sections: c, options: o, holder: s, Log: o.Log}
	var err error
	if r.from, err = lastCheckpoint(c.Train.Out, s); err != nil {
		return nil, err
	}
	if err := c.checkFolder(o.Resume, r.from, s.state()); err != nil {
		return nil, err
	}
	if r.from == "" {
		s.state().Config, s.state().Best = c.identity(), -1
	}
	if err := removeLeftovers(c.Train.Out); err != nil {
		return nil, err
	}
	precision, err := engine.ParsePrecision(c.Train.Precision)
	if err != nil {
		return nil, c.mistake("train.precision", "%w", err)
	}
	if o.Device == nil {
		o.Device = engine.CPU(c.Train.Threads, engine.WithPrecision(precision))
	}
	if r.bfloat16Moments() && engine.GPUOf(o.Device) == nil {
		return nil, c.mistake("train.moments", "only a GPU has such means: train with --device cuda, or with train.moments=%s", MomentsFloat32)
	}
	r.Device, r.operators = watch(o.Device, o.Profile)
	r.Tape = engine.NewTape(r.Device)
	if r.Tape.Checkpointing, err = engine.ParseCheckpointing(c.Train.Checkpointing); err != nil {
		return nil, c.mistake("train.checkpointing", "%w", err)
	}
	return r, nil
}

// Begin finds the memory of the run's steps (plan), takes it, and writes the run folder.
// What the trainer has to tell of its data goes into the log, as pairs of name and value.
func (r *Run) Begin(ctx context.Context, walk Walk, about ...any) error {
	memory, err := r.plan(ctx, walk)
	if err != nil {
		return err
	}
	c, s := r.sections.Train, r.holder.state()
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	if r.metrics, err = openMetrics(c.Out, s.Step); err != nil {
		return err
	}
	about = append([]any{"device", r.Device.Name()}, about...)
	r.Log.Info("training", append(about, "steps", r.Total, "parameters", elements(r.Model.Params()), "trained", elements(r.Params), "from_step", s.Step)...)
	r.Log.Info("memory of a step", "total", bytesText(memory.Total()), "weights", bytesText(memory.Weights), "gradients", bytesText(memory.Gradients),
		"optimiser", bytesText(memory.Moments), "activations", bytesText(memory.Activations), "checkpointing", c.Checkpointing, "limit", bytesText(r.memoryLimit(memory)))
	return replaceFile(filepath.Join(c.Out, ConfigName), []byte(r.sections.text()))
}

// Close closes the run's files. It may be called on a run that did not begin.
func (r *Run) Close() error {
	if r.metrics == nil {
		return nil
	}
	return r.metrics.close()
}

// ModelDir is the folder of the run's result.
func (r *Run) ModelDir() string { return filepath.Join(r.sections.Train.Out, "model") }

func elements(params []*engine.Param) int {
	n := 0
	for _, p := range params {
		n += p.Rows * p.Cols
	}
	return n
}

// ZeroGrad forgets the gradients of the step before.
func (r *Run) ZeroGrad() {
	for _, p := range r.Params {
		p.ZeroGrad()
	}
}

// Norm returns the global norm of the gradients. It waits for the device: what the step
// fetched is there afterwards.
func (r *Run) Norm() (float64, error) {
	norm := gradnorm.Norm(r.Device, r.Params)
	if err := engine.Wait(r.Device); err != nil {
		return 0, fmt.Errorf("step %d: %w", r.holder.state().Step+1, err)
	}
	return norm, nil
}

// Rate is the learning rate of the step under way.
func (r *Run) Rate() float64 {
	return r.sections.Train.learningRate(r.holder.state().Step, r.Total)
}

// Update ends a step: the weights follow their gradients, of the given norm, at the given
// rate.
func (r *Run) Update(rate, norm float64) {
	c, s := r.sections.Train, r.holder.state()
	s.Step++
	s.BadRun = 0
	adamw.Step(r.Device, r.Params, r.Moments, adamw.Options{
		LR: rate, Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Epsilon, WeightDecay: c.WeightDecay,
	}, min(1, c.GradClip/(norm+1e-6)))
}

// Finite tells whether a step may be applied.
func Finite(loss, norm float64) bool {
	return !math.IsNaN(loss) && !math.IsInf(loss, 0) && !math.IsNaN(norm) && !math.IsInf(norm, 0)
}

// Write appends a line to metrics.jsonl: a pointer to a struct with the field "step".
func (r *Run) Write(line any) error { return r.metrics.write(line) }

// Improved records the figure of a validation, of which more is better. The best model so
// far is exported.
func (r *Run) Improved(figure float64) (bool, error) {
	s := r.holder.state()
	s.Worse++
	if figure <= s.Best {
		return false, nil
	}
	s.Best, s.BestStep, s.Worse = figure, s.Step, 0
	return true, r.Export()
}
