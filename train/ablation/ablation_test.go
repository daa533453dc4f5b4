package ablation

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"caper/data"
	"caper/data/sample"
	"caper/train/run"
)

const matrixText = `
config = "prm-tiny.toml"
overrides = ["train.max_steps=3", "train.checkpoint_every=1", "train.validate_every=0", "train.holdout_databases=0", "model.hidden_size=16",
  "model.num_hidden_layers=2", "model.head_dim=8", "model.linear_key_head_dim=8", "model.linear_value_head_dim=8", "model.vocab_size=400"]
seeds = [1, 2]

[[variants]]
name = "default"

[[variants]]
name = "no propagation"
annotate = { propagation = false }

[[variants]]
name = "margin none"
train = ["loss.margin=none"]
`

// stepCounter counts training steps, and ends the run behind one of them.
type stepCounter struct {
	steps int
	last  int
	stop  context.CancelFunc
}

func (c *stepCounter) Step(int, int, []run.Figure) {
	if c.steps++; c.steps == c.last {
		c.stop()
	}
}

// smallStudy is a study over a few databases in dir.
func smallStudy(t *testing.T, bench *data.Benchmark, root, dir string, counter *stepCounter) *Study {
	t.Helper()
	m, err := parseMatrix([]byte(matrixText), "matrix.toml")
	if err != nil {
		t.Fatal(err)
	}
	candidates := func(split string) Candidates {
		return Candidates{Split: split, Rollouts: data.ReadRollouts(sample.RolloutPath(root, split), bench, split)}
	}
	return &Study{
		Matrix: m, Dir: dir, Bench: bench, Train: candidates(sample.Train), Test: candidates(sample.Test),
		Threads: 1, Log: slog.New(slog.DiscardHandler), Progress: counter,
	}
}

func TestStudyGoesOnWhereItStopped(t *testing.T) {
	root := filepath.Join(t.TempDir(), "bench")
	o := sample.DefaultOptions()
	o.TrainDatabases, o.TestDatabases, o.NewWordsDatabases, o.Questions, o.DevQuestions, o.LargeEvery = 5, 2, 0, 8, 0, 0
	if _, err := sample.Write(t.Context(), root, o); err != nil {
		t.Fatal(err)
	}
	if _, err := sample.WriteRollouts(t.Context(), root, sample.DefaultRolloutOptions()); err != nil {
		t.Fatal(err)
	}
	bench, err := data.OpenBenchmark(root, "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	dir := t.TempDir()

	whole := &stepCounter{}
	want, err := smallStudy(t, bench, root, filepath.Join(dir, "whole"), whole).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if whole.steps != 3*3*2 {
		t.Errorf("%d steps, want 3 in each of 3 x 2 cells", whole.steps)
	}
	for _, c := range want {
		if c.Items == 0 || c.Seeds != 2 || len(c.Rows) != 3 || c.Rows[0].Difference != 0 {
			t.Errorf("comparison %+v: want two seeds, three variants, and no difference from itself", c)
		}
	}

	// Stopped inside the second cell, then again inside the fourth.
	for _, last := range []int{5, 11} {
		ctx, stop := context.WithCancel(t.Context())
		_, err := smallStudy(t, bench, root, filepath.Join(dir, "parts"), &stepCounter{last: last, stop: stop}).Run(ctx)
		if !errors.Is(err, run.ErrInterrupted) {
			t.Fatalf("stopped behind step %d: %v", last, err)
		}
	}
	rest := &stepCounter{}
	got, err := smallStudy(t, bench, root, filepath.Join(dir, "parts"), rest).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stopped and resumed (-whole +parts):\n%s", diff)
	}
	if again := rest.steps; again >= whole.steps-5 {
		t.Errorf("the last part did %d steps: it did cells again that were done", again)
	}

	// Other candidates make other tuples: what was tested on the old ones is not taken over.
	fewer := smallStudy(t, bench, root, filepath.Join(dir, "parts"), &stepCounter{})
	all := fewer.Test.Rollouts
	fewer.Test.Rollouts = func(yield func(data.Rollout, error) bool) {
		n := 0
		for r, err := range all {
			if n++; n > 12 || !yield(r, err) {
				return
			}
		}
	}
	if _, err := fewer.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "other tuples") {
		t.Errorf("results on other candidates were taken over: %v", err)
	}

	// A study whose variants mean something else must not take over old results.
	other := smallStudy(t, bench, root, filepath.Join(dir, "parts"), &stepCounter{})
	other.Matrix.Variants[2].Train = []string{"loss.margin=offset"}
	if _, err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another configuration") {
		t.Errorf("results of another configuration were taken over: %v", err)
	}
}

func TestMatrixMistakes(t *testing.T) {
	two := "[[variants]]\nname = 'a'\n[[variants]]\nname = 'b'\n"
	for _, c := range []struct{ text, want string }{
		{"config = 'prm-tiny.toml'\n", "at least two"},
		{two, "config: name the training configuration"},
		{"config = 'x'\nsedes = [1]\n" + two, "m.toml:2: unknown key \"sedes\""},
		{"config = 'x'\nseeds = 'one'\n" + two, "m.toml:2:"},
		{"config = 'x'\nseeds = [1, 1]\n" + two, "1 is there twice"},
		{"config = 'x'\n[[variants]]\nname = 'a b'\n[[variants]]\nname = 'a-b'\n", "share the folder"},
		{"config = 'x'\n[[variants]]\nname = 'a'\n[[variants]]\n", "number 2 has no name"},
		{"config = 'x'\n[[variants]]\nname = 'a'\nannotate = { propagate = false }\n", "m.toml:4: unknown key"},
		{"kind = 'sft'\nconfig = 'x'\n" + two, "kind: want"},
		{"kind = 'grpo'\nconfig = 'x'\n" + two, "splits: name"},
		{"config = 'x'\nsplits = ['dev']\n" + two, "are of kind"},
		{"kind = 'grpo'\nconfig = 'x'\nsplits = ['dev']\n" + two + "annotate = { propagation = false }\n", "policies are trained on questions"},
		{"kind = 'grpo'\nconfig = 'x'\nsplits = ['dev']\n[[variants]]\nname = 'a'\nuntrained = true\n[[variants]]\nname = 'b'\nuntrained = true\n", "more than one is untrained"},
	} {
		_, err := parseMatrix([]byte(c.text), "m.toml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %q", c.text, err, c.want)
		}
	}
}

// Every matrix in the binary must give configurations that parse.
func TestPresets(t *testing.T) {
	names := presets()
	if len(names) == 0 {
		t.Fatal("no matrices in the binary")
	}
	for _, name := range names {
		m, err := LoadMatrix(name)
		if err != nil {
			t.Error(err)
			continue
		}
		s := &Study{Matrix: m, Dir: t.TempDir()}
		if _, err := s.cells(s.kind()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadMatrix("nothing-like-it"); err == nil || !strings.Contains(err.Error(), names[0]) {
		t.Errorf("an unknown name: %v, want the names there are", err)
	}
}
