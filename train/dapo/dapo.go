// Package dapo trains specialists (sirius.md 2.3): a curriculum of questions that the policy
// answers right now and then, GRPO with DAPO's settings on it, and a second stage on those
// that remain hard.
//
//	dapo.go    the two stages
//	policy.go  the policy that is asked how hard questions are
//	config.go  their configuration
package dapo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"caper/data"
	"caper/model/remote"
	"caper/train/curriculum"
	"caper/train/grpo"
	"caper/train/run"
	"caper/train/settings"
)

// Options are the choices that do not change a run's result.
type Options struct {
	grpo.Options
	// PlanOnly stops ahead of the next stage's training, when its table is there.
	PlanOnly bool
	// Planned is told of a table when it is there, and of its folder.
	Planned func(stage int, t *curriculum.Table, folder string)
}

// Outcome is what a training reports.
type Outcome struct {
	ModelDir string        `json:"model"` // of the last stage
	Stages   []Stage       `json:"stages"`
	Elapsed  time.Duration `json:"elapsed_ns"`
}

// Stage is what one did.
type Stage struct {
	Drawn int           `json:"questions_drawn"`
	Table string        `json:"table"`
	Run   *grpo.Outcome `json:"run,omitempty"` // nil where it was only planned, or nothing is drawn
}

// training is one under way.
type training struct {
	config  Config
	options Options
	bench   *data.Benchmark
}

// Train trains a specialist. The run folder holds config.toml; of each stage curriculum-N,
// with its table, and stage-N, the folder of a policy run; and of a stage that is done,
// stage-N.json.
func Train(ctx context.Context, c Config, o Options) (out Outcome, err error) {
	started := time.Now()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := begin(&c, o.Resume); err != nil {
		return out, err
	}
	o.Resume = true // the stages' folders are this run's
	t := &training{config: c, options: o}
	if t.bench, err = data.OpenBenchmark(c.Train.Benchmark, c.Train.Format); err != nil {
		return out, c.mistake("train.bench", "%w", err)
	}
	defer t.bench.Close()
	items, err := t.questions()
	if err != nil {
		return out, err
	}
	stages := 1
	if c.Second.Epochs > 0 {
		stages = 2
	}
	for number := 1; number <= stages; number++ {
		s, err := t.stage(ctx, number, out.ModelDir, &items)
		if err != nil {
			return out, interrupted(ctx, err)
		}
		out.Stages = append(out.Stages, s)
		if s.Run == nil {
			break
		}
		out.ModelDir = s.Run.ModelDir
	}
	out.Elapsed = time.Since(started)
	return out, nil
}

// interrupted says that a run can be gone on with, where it was stopped.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, run.ErrInterrupted) {
		return err
	}
	return fmt.Errorf("%w: %w", run.ErrInterrupted, err)
}

// begin checks configuration and folder, and notes the one in the other.
func begin(c *Config, resume bool) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Train.Out == "" {
		return c.mistake("train.out", "name the run folder: train.out=DIR")
	}
	out, err := filepath.Abs(c.Train.Out) // notes of finished stages name folders below it
	if err != nil {
		return c.mistake("train.out", "%w", err)
	}
	c.Train.Out = out
	for key, path := range map[string]*string{"model.path": &c.Model.Path, "train.bench": &c.Train.Benchmark} {
		if *path == "" {
			return c.mistake(key, "name its folder: %s=DIR", key)
		}
		paths := []string{*path}
		if err := settings.FindFiles(paths); err != nil {
			return c.mistake(key, "%w", err)
		}
		*path = paths[0]
	}
	text, err := os.ReadFile(c.configPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(c.Train.Out, 0o755); err != nil {
			return c.mistake("train.out", "%w", err)
		}
		return write(c.configPath(), []byte(c.Text()))
	case err != nil:
		return err
	case !resume:
		return c.mistake("train.out", "a run is there already: add --resume to go on, or choose another folder")
	}
	defaults := Defaults()
	key, err := settings.Difference(c, &defaults, string(text), run.Immaterial...)
	if err != nil {
		return fmt.Errorf("%s: %w", c.configPath(), err)
	}
	if key != "" {
		return c.mistake(key, "the run in %s has another value: resume it with --config %s, or choose another train.out", c.Train.Out, c.configPath())
	}
	return nil
}

func write(path string, text []byte) error {
	f, err := data.Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Commit()
}

// questions are those of the benchmark.
func (t *training) questions() (items []curriculum.Item, err error) {
	c := t.config
	questions, err := t.bench.Questions(c.Train.Split)
	if err != nil {
		return nil, c.mistake("train.split", "%w", err)
	}
	if n := c.Train.Questions; n > 0 {
		questions = questions[:min(n, len(questions))]
	}
	for _, q := range questions {
		items = append(items, curriculum.Item{Question: q, Origin: curriculum.Benchmark})
	}
	return items, nil
}

// stage makes the table of a stage, from the questions that there are and to which it adds,
// and trains on it. A stage that is done is not done again.
func (t *training) stage(ctx context.Context, number int, model string, items *[]curriculum.Item) (s Stage, err error) {
	c, folder := t.config, t.config.folder("curriculum", number)
	s.Table = filepath.Join(folder, curriculum.TableName)
	config := c.stage(number, model, s.Table)
	finished := c.folder("stage", number) + ".json"
	text, err := os.ReadFile(finished)
	if err == nil {
		if err := json.Unmarshal(text, &s); err != nil {
			return s, fmt.Errorf("%s: %w", finished, err)
		}
		*items, err = curriculum.Read(s.Table)
		if number == 1 {
			*items = lasting(*items)
		}
		return s, err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	table, err := t.plan(ctx, number, config, folder, *items)
	if err != nil {
		return s, fmt.Errorf("curriculum of stage %d: %w", number, err)
	}
	*items, s.Drawn = lasting(table.Items), table.Drawn()
	if t.options.Planned != nil {
		t.options.Planned(number, table, folder)
	}
	if s.Drawn == 0 && number == 1 {
		return s, fmt.Errorf("curriculum of stage 1: no question is answered right now and then (%s): train the policy further, or less, before", filepath.Join(folder, curriculum.TextName))
	}
	if s.Drawn == 0 {
		t.options.Log.Warn("no question is as hard as the second stage's: it is left out", "low", c.Second.Low, "high", c.Second.High)
	}
	if t.options.PlanOnly || s.Drawn == 0 {
		return s, nil
	}
	outcome, err := grpo.Train(ctx, config, t.options.Options)
	if err != nil {
		return s, err
	}
	s.Run = &outcome
	if text, err = data.Marshal(s); err != nil {
		return s, err
	}
	return s, write(finished, append(bytes.TrimSpace(text), '\n'))
}

// lasting are the questions of the benchmark and the siblings that were drawn: what the next
// stage chooses among.
func lasting(items []curriculum.Item) (kept []curriculum.Item) {
	for _, i := range items {
		if i.Origin == curriculum.Benchmark || i.Weight > 0 {
			kept = append(kept, i)
		}
	}
	return kept
}

// plan makes a stage's table. Only the first makes siblings: the second asks for what its
// policy finds hard, of which the first's table has enough.
func (t *training) plan(ctx context.Context, number int, config grpo.Config, folder string, items []curriculum.Item) (*curriculum.Table, error) {
	c := t.config
	ask := config
	ask.Train.Curriculum = "" // which is what is being made
	policy := &lazyPolicy{open: func() (*grpo.Rater, error) { return grpo.OpenRater(ctx, ask, c.Curriculum.Samples, t.options.Options) }}
	defer policy.close()
	p := curriculum.Planner{Policy: policy, Seed: c.Train.Seed, Interval: 10 * time.Second,
		Stage:    curriculum.Stage{Samples: c.Curriculum.Samples, High: 1, Anchors: c.Curriculum.Anchors},
		Progress: t.progress()}
	if number == 2 {
		p.Stage.Low, p.Stage.High, p.Stage.Anchors = c.Second.Low, c.Second.High, 0
	} else if c.Curriculum.Siblings {
		p.Siblings = &curriculum.Siblings{Bench: t.bench, Reworder: t.reworder(), Tries: c.Curriculum.Tries, Rows: c.Curriculum.Rows, Seed: c.Train.Seed}
	}
	return p.Plan(ctx, folder, items)
}

// reworder words siblings.
func (t *training) reworder() curriculum.Reworder {
	c := t.config.Curriculum
	if c.Server == "" {
		return curriculum.Template{}
	}
	s := remote.NewServer(c.Server, c.ServerModel)
	s.Key, s.Attempts = os.Getenv(c.ServerKey), t.config.Rollout.Attempts
	s.Timeout = time.Duration(t.config.Rollout.CallTimeout * float64(time.Second))
	return &curriculum.ServerReworder{Server: s, Prompt: t.bench.Prompt, Extract: t.options.Extract, MaxTokens: c.MaxTokens}
}

// progress logs how far a plan is, every ten seconds and at the end of a phase.
func (t *training) progress() func(phase string, done, total int) {
	last := time.Now()
	return func(phase string, done, total int) {
		if now := time.Now(); done == total || now.Sub(last) > 10*time.Second {
			last = now
			t.options.Log.Info("curriculum", "phase", phase, "done", done, "of", total)
		}
	}
}
