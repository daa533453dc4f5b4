package ablation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"caper/data"
	"caper/engine"
	"caper/eval"
	"caper/train/run"
)

// Study runs the cells of a matrix under one folder:
//
//	tuples/train-HASH.jsonl            training tuples, shared by all that annotate alike
//	tuples/test-HASH.jsonl             tuples of the test
//	runs/VARIANT/seed-N/               a cell's run folder
//	runs/VARIANT/seed-N/outcomes.json  how each test item turned out; the cell is done
//
// Policies need no tuples.
type Study struct {
	Matrix Matrix
	// Dir is the study's folder.
	Dir string
	// Bench holds the databases, and the questions of policies.
	Bench *data.Benchmark
	// Train and Test are the candidates to annotate for the training and the test of
	// reward models, on different databases.
	Train, Test Candidates
	// Extract finds the query in a policy's answer that is none as it stands.
	Extract func(string) string
	// Device runs the trainings; nil is the processor with Threads.
	Device  engine.Device
	Threads int
	Log     *slog.Logger
	// Progress is told of every training step.
	Progress run.Progress
}

// kind is what studies of reward models and of policies differ in.
type kind interface {
	// job makes the work of a cell from the configuration text and words over it.
	job(v Variant, text []byte, name string, words []string) (job, error)
	// prepare makes what the cells share.
	prepare(ctx context.Context) error
}

// job is the work of one cell.
type job interface {
	// check finds what is missing to run the cell.
	check() error
	// source says what the cell's results come from; it makes what is missing of that.
	source(ctx context.Context) (outcomes, error)
	// run trains and tests.
	run(ctx context.Context) (steps int, tests []Test, err error)
}

// kind returns the study's.
func (s *Study) kind() kind {
	if s.Matrix.Kind == Policies {
		return &policies{study: s, hashes: map[string]string{}}
	}
	return &rewardModels{study: s}
}

// cell is a variant with a seed.
type cell struct {
	variant Variant
	seed    uint64
	dir     string
	job     job
}

// outcomesName is the file in a cell's folder that is there when the cell is done.
const outcomesName = "outcomes.json"

// outcomes are a finished cell's results.
type outcomes struct {
	// Config, Tuples and Inputs are what they come from: the configuration's text, the
	// hash of what decides over the tuples of a reward model, and that of the models and
	// questions of a policy.
	Config string `json:"config"`
	Tuples string `json:"tuples,omitempty"`
	Inputs string `json:"inputs,omitempty"`
	Steps  int    `json:"steps"`
	// Tests are the outcomes of each test by name.
	Tests []Test `json:"tests"`
}

// Test is how the items of one test turned out.
type Test struct {
	Name     string         `json:"name"`
	Outcomes []eval.Outcome `json:"outcomes"`
}

// Run runs the cells that are not done and returns the comparison of all.
func (s *Study) Run(ctx context.Context) ([]Comparison, error) {
	k := s.kind()
	cells, err := s.cells(k)
	if err != nil {
		return nil, err
	}
	for _, v := range s.Matrix.Variants {
		if err := cells[v.Name][0].job.check(); err != nil {
			return nil, fmt.Errorf("%s: variant %q: %w", s.Matrix.file, v.Name, err)
		}
	}
	if err := k.prepare(ctx); err != nil {
		return nil, err
	}
	// Seeds outermost: a study that is stopped has compared all variants on some.
	results := map[string][][]Test{}
	for i := range s.Matrix.Seeds {
		for _, v := range s.Matrix.Variants {
			c := cells[v.Name][i]
			tests, err := s.run(ctx, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.dir, err)
			}
			results[v.Name] = append(results[v.Name], tests)
		}
	}
	return s.compare(results)
}

// cells makes the configuration of every cell before anything is run: a mistake in
// the last variant shows at once.
func (s *Study) cells(k kind) (map[string][]cell, error) {
	text, name, err := s.Matrix.configText()
	if err != nil {
		return nil, err
	}
	cells := map[string][]cell{}
	for _, v := range s.Matrix.Variants {
		for _, seed := range s.Matrix.Seeds {
			dir := filepath.Join(s.Dir, "runs", v.folder(), fmt.Sprintf("seed-%d", seed))
			words := append(append([]string{}, s.Matrix.Overrides...), v.Train...)
			words = append(words, "train.out="+dir, fmt.Sprintf("train.seed=%d", seed), fmt.Sprintf("train.threads=%d", s.Threads))
			j, err := k.job(v, text, name, words)
			if err != nil {
				return nil, fmt.Errorf("%s: variant %q: %w", s.Matrix.file, v.Name, err)
			}
			cells[v.Name] = append(cells[v.Name], cell{v, seed, dir, j})
		}
	}
	return cells, nil
}

// run does one cell, unless it is done.
func (s *Study) run(ctx context.Context, c cell) ([]Test, error) {
	out, err := c.job.source(ctx)
	if err != nil {
		return nil, err
	}
	if tests, done, err := c.done(out); done || err != nil {
		return tests, err
	}
	s.Log.Info("cell", "variant", c.variant.Name, "seed", c.seed)
	if out.Steps, out.Tests, err = c.job.run(ctx); err != nil {
		return nil, err
	}
	return out.Tests, c.keep(out)
}

// options are those of a cell's training.
func (s *Study) options() run.Options {
	return run.Options{Resume: true, Log: s.Log, Progress: s.Progress, Device: s.Device}
}

func (s *Study) device() engine.Device {
	if s.Device != nil {
		return s.Device
	}
	return engine.CPU(s.Threads)
}

// done returns the results of a finished cell. One that was made in another way is an
// error: its folder is not ours to overwrite.
func (c cell) done(want outcomes) ([]Test, bool, error) {
	path := filepath.Join(c.dir, outcomesName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var got outcomes
	if err := json.Unmarshal(text, &got); err != nil {
		return nil, false, fmt.Errorf("%s: %w: remove it to train again", path, data.PlainJSONError(err))
	}
	what := "tuples"
	if want.Inputs != "" {
		what = "models or questions"
	}
	if got.Config != want.Config || got.Tuples != want.Tuples || got.Inputs != want.Inputs {
		return nil, false, fmt.Errorf("%s comes from another configuration or other %s: remove the cell's folder, or choose another folder for the study", path, what)
	}
	return got.Tests, true, nil
}

func (c cell) keep(o outcomes) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil { // of a cell without a training
		return err
	}
	f, err := data.Create(filepath.Join(c.dir, outcomesName))
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := f.WriteLine(o); err != nil {
		return err
	}
	return f.Commit()
}
