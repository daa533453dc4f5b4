// Package sft trains policies on queries that are right: the next-token loss of a query and
// its end, given the prompt. What it learns from is a benchmark's gold, or candidates that
// were judged correct.
//
//	sft.go       a run: opening, steps, result
//	config.go    its configuration
//	dataset.go   questions to learn from and to be judged by, as tokens
//	step.go      loss and gradient, in packed trees
//	validate.go  execution accuracy of greedy answers to held-out questions
//	metrics.go   what a step and a validation tell
package sft

import (
	"context"
	"time"

	"caper/data"
	"caper/engine"
	"caper/model"
	"caper/train/run"
)

// Outcome is what a finished run reports.
type Outcome struct {
	ModelDir string `json:"model"`
	Steps    int    `json:"steps"`
	Queries  int    `json:"queries"` // learned from
	TooLong  int    `json:"too_long"`
	Skipped  int    `json:"skipped_steps"`
	// Of the best validation; left out when there was none.
	BestEX   float64       `json:"best_ex,omitempty"`
	BestStep int           `json:"best_step,omitempty"`
	Stopped  string        `json:"stopped,omitempty"`
	Elapsed  time.Duration `json:"elapsed_ns"`
}

// state is a run's, with where its steps are in the data.
type state struct {
	run.State
	run.Position
}

// sft is a training under way.
type sft struct {
	run       *run.Run
	config    Config
	state     state
	bench     *data.Benchmark
	data      *dataset
	validator *validator // nil when nothing is held out
	passes    *run.Passes

	// What a step works with; its memory is kept from step to step.
	examples []*example
	packer   engine.Packer
	groups   [][][]int32
	rows     []int32
	targets  []int32
	results  []results // of the step's micro-batches
	measured measured
	line     Metrics
	shown    []run.Figure
}

// Train trains a policy and returns where its best model lies.
func Train(ctx context.Context, c Config, o run.Options) (Outcome, error) {
	started := time.Now()
	r, err := open(ctx, c, o)
	if err != nil {
		return Outcome{}, run.BeforeFirstStep(ctx, err)
	}
	defer r.close()
	stopped, err := r.run.Loop(ctx, r)
	if err != nil {
		return Outcome{}, err
	}
	s := r.state
	return Outcome{
		ModelDir: r.run.ModelDir(), Steps: s.Step, Queries: len(r.data.examples), TooLong: r.data.tooLong, Skipped: s.Skipped,
		BestEX: max(0, s.Best), BestStep: s.BestStep, Stopped: stopped, Elapsed: time.Since(started),
	}, nil
}

func (r *sft) close() {
	if r.run != nil {
		r.run.Close()
	}
	r.bench.Close()
}

// open prepares a run: data, model, optimiser, and the run folder.
func open(ctx context.Context, c Config, o run.Options) (*sft, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.checkData(); err != nil {
		return nil, err
	}
	bench, err := data.OpenBenchmark(c.Train.Benchmark, c.Train.Format)
	if err != nil {
		return nil, c.mistake("train.bench", "%w", err)
	}
	r := &sft{config: c, bench: bench}
	if err := r.open(ctx, o); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *sft) open(ctx context.Context, o run.Options) (err error) {
	if r.run, err = run.Open(r.config.sections(), &r.state, o); err != nil {
		return err
	}
	sources, err := r.read(ctx)
	if err != nil {
		return err
	}
	if err := r.run.Start(r.texts(sources.queries), model.Config{EndToken: r.config.Model.EndToken}, r.prepare); err != nil {
		return err
	}
	if err := r.encode(sources); err != nil {
		return err
	}
	r.passes = r.data.passes(&r.state.Position, r.config.Train)
	r.run.Total = r.passes.Steps(r.config.Train.Epochs)
	if limit := r.config.Train.MaxSteps; limit > 0 {
		r.run.Total = min(r.run.Total, limit)
	}
	return r.run.Begin(ctx, r.walk, "queries", len(r.data.examples), "too_long", r.data.tooLong, "held_out", r.data.heldOut())
}

// prepare makes a model one whose output ends with the end token.
func (r *sft) prepare(m *model.Model) error {
	if m.Head == nil {
		return r.config.mistake("model.path", "a reward model with a score head cannot write queries: name a language model")
	}
	if m.Config.EndToken == "" {
		m.Config.EndToken = r.config.Model.EndToken
	}
	if err := m.EndsWith(m.Config.EndToken); err != nil {
		return r.config.mistake("model.end_token", "%w: name an added token, such as <|im_end|> of Qwen3.5", err)
	}
	return nil
}

// Step implements run.Trainer.
func (r *sft) Step(context.Context) ([]run.Figure, error) {
	m, err := r.step(r.take())
	if err != nil {
		return nil, err
	}
	m.Epoch = r.passes.Done()
	r.line = m
	if m.Skipped {
		return nil, r.run.Write(&r.line)
	}
	r.shown = append(r.shown[:0], run.Figure{Name: "loss", Value: *m.Loss},
		run.Figure{Name: "tokens_per_second", Value: m.TokensPerSecond}, run.Figure{Name: "sharing", Value: m.Sharing})
	return r.shown, r.run.Write(&r.line)
}

// take returns the examples of the next optimiser step, valid until the next call.
func (r *sft) take() []*example {
	r.examples = r.examples[:0]
	for _, i := range r.passes.Take() {
		r.examples = append(r.examples, r.data.bundles[i]...)
	}
	return r.examples
}

// walk takes the steps that are left on a twin of the run.
func (r *sft) walk(ctx context.Context, on *run.Run, tokens int) error {
	twin := &sft{run: on, config: r.config, data: r.data}
	twin.passes = r.passes.From(&twin.state.Position)
	for range min(on.Total-r.state.Step, run.Surveyed) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		examples := twin.take()
		predicted := predictions(examples)
		for twin.lay(examples, tokens); twin.packer.Next(); {
			twin.microBatch(examples, predicted)
		}
	}
	return nil
}
