package ablation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"

	"caper/annotate"
	"caper/data"
	"caper/engine"
	"caper/eval"
	"caper/train/prm"
	"caper/train/run"
)

// Study runs the cells of a matrix under one folder:
//
//	tuples/train-HASH.jsonl            training tuples, shared by all that annotate alike
//	tuples/test-HASH.jsonl             tuples of the test
//	runs/VARIANT/seed-N/               a cell's run folder
//	runs/VARIANT/seed-N/outcomes.json  how each test item turned out; the cell is done
type Study struct {
	Matrix Matrix
	// Dir is the study's folder.
	Dir string
	// Bench holds the databases; Train and Test are the candidates to annotate for
	// training and for the test, on different databases.
	Bench       *data.Benchmark
	Train, Test Candidates
	// Device runs the trainings; nil is the processor with Threads.
	Device  engine.Device
	Threads int
	Log     *slog.Logger
	// Progress is told of every training step.
	Progress run.Progress
}

// Candidates are rollouts with the name of their split.
type Candidates struct {
	Split    string
	Rollouts iter.Seq2[data.Rollout, error]

	content string // stands for all rollouts: other ones make other tuples
}

// read goes through the rollouts once: a broken line ends the study before it begins.
func (c *Candidates) read(ctx context.Context) error {
	h := sha256.New()
	for r, err := range c.Rollouts {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		line, err := data.Marshal(r)
		if err != nil {
			return err
		}
		h.Write(append(line, '\n'))
	}
	c.content = hex.EncodeToString(h.Sum(nil))
	return nil
}

// cell is a variant with a seed.
type cell struct {
	variant Variant
	config  prm.Config
	dir     string
}

// outcomesName is the file in a cell's folder that is there when the cell is done.
const outcomesName = "outcomes.json"

// outcomes are a finished cell's results.
type outcomes struct {
	// Config and Tuples are what they come from: the configuration's text and the
	// hash of what decides over the tuples.
	Config string `json:"config"`
	Tuples string `json:"tuples"`
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
	cells, err := s.cells()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, "tuples"), 0o755); err != nil {
		return nil, err
	}
	for _, side := range []*Candidates{&s.Train, &s.Test} {
		if err := side.read(ctx); err != nil {
			return nil, err
		}
	}
	test, err := s.annotate(ctx, s.Test, annotate.DefaultOptions(), "test")
	if err != nil {
		return nil, err
	}
	faults, err := eval.Faults(data.ReadTuples(test.path))
	if err != nil {
		return nil, err
	}
	if len(faults) == 0 {
		return nil, errors.New("the test candidates gave no failed queries to localise: give others")
	}
	// Seeds outermost: a study that is stopped has compared all variants on some.
	results := map[string][][]Test{}
	for i := range s.Matrix.Seeds {
		for _, v := range s.Matrix.Variants {
			c := cells[v.Name][i]
			tests, err := s.run(ctx, c, faults, test.hash)
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
func (s *Study) cells() (map[string][]cell, error) {
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
			config, err := prm.ParseConfig(text, name, words)
			if err != nil {
				return nil, fmt.Errorf("%s: variant %q: %w", s.Matrix.file, v.Name, err)
			}
			cells[v.Name] = append(cells[v.Name], cell{v, config, dir})
		}
	}
	return cells, nil
}

// run does one cell, unless it is done.
func (s *Study) run(ctx context.Context, c cell, faults []eval.Fault, test string) ([]Test, error) {
	tuples, err := s.annotate(ctx, s.Train, c.variant.Annotate.options(), "train")
	if err != nil {
		return nil, err
	}
	c.config.Train.Tuples = []string{tuples.path}
	out := outcomes{Config: decisive(c.config), Tuples: tuples.hash + " tested on " + test}
	if tests, done, err := c.done(out); done || err != nil {
		return tests, err
	}
	s.Log.Info("cell", "variant", c.variant.Name, "seed", c.config.Train.Seed)
	trained, err := prm.Train(ctx, c.config, run.Options{Resume: true, Log: s.Log, Progress: s.Progress, Device: s.Device})
	if err != nil {
		return nil, err
	}
	out.Steps = trained.Steps
	if out.Tests, err = localise(ctx, trained.ModelDir, s.device(), faults); err != nil {
		return nil, err
	}
	return out.Tests, c.keep(out)
}

// decisive is the text of a configuration without what changes no result.
func decisive(c prm.Config) string {
	c.Train.Out, c.Train.Tuples, c.Train.Threads = "", nil, 0
	return c.Text()
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
	if got.Config != want.Config || got.Tuples != want.Tuples {
		return nil, false, fmt.Errorf("%s comes from another configuration or other tuples: remove the cell's folder, or choose another folder for the study", path)
	}
	return got.Tests, true, nil
}

func (c cell) keep(o outcomes) error {
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
