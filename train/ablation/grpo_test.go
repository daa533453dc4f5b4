package ablation

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"caper/data"
	"caper/train/grpo/toy"
	"caper/train/run"
)

const policyMatrix = `
kind = "grpo"
config = "grpo-tiny.toml"
overrides = ["train.max_steps=3", "train.batch_questions=3", "train.epochs=9", "train.lr=1e-3", "train.checkpoint_every=1", "train.validation_split=",
  "rollout.samples=4", "rollout.max_tokens=40", "rollout.cache_tokens=8192", "reward.workers=2"]
seeds = [1, 2]
splits = ["dev"]
questions = 4
samples = 3

[[variants]]
name = "sparse"
train = ["reward.kind=sparse", "reward.model="]

[[variants]]
name = "clause"

[[variants]]
name = "start"
untrained = true
`

// policyStudy is a study of the toy world's policy in dir.
func policyStudy(t *testing.T, w toy.World, dir string, counter *stepCounter) *Study {
	t.Helper()
	m, err := parseMatrix([]byte(policyMatrix), "matrix.toml")
	if err != nil {
		t.Fatal(err)
	}
	m.Overrides = append(m.Overrides, "model.path="+w.Policy, "reward.model="+w.PRM)
	bench, err := data.OpenBenchmark(w.Bench, "spider")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	return &Study{Matrix: m, Dir: dir, Bench: bench, Threads: 1, Log: slog.New(slog.DiscardHandler), Progress: counter}
}

func TestPolicyStudy(t *testing.T) {
	w, err := toy.Make(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	whole := &stepCounter{}
	want, err := policyStudy(t, w, filepath.Join(dir, "whole"), whole).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if whole.steps != 3*2*2 {
		t.Errorf("%d steps, want 3 in each of 2 x 2 cells that train", whole.steps)
	}
	if len(want) != 2 || want[0].Test != "EX on dev" || want[1].Test != "MV@3 on dev" {
		t.Fatalf("tests %+v, want the greedy answer's and the vote's", want)
	}
	for _, c := range want {
		if c.Items != 4 || c.Seeds != 2 || len(c.Rows) != 3 || c.Untrained() != "start" {
			t.Errorf("%s: %d items, %d seeds, %d rows, start %q", c.Test, c.Items, c.Seeds, len(c.Rows), c.Untrained())
		}
		start := c.Rows[2]
		if start.Start != nil {
			t.Errorf("%s: the start is compared with itself", c.Test)
		}
		for _, r := range c.Rows[:2] {
			if r.Start == nil || !near(r.Start.Difference, r.Mean-start.Mean) {
				t.Errorf("%s: %s gained %+v over the start, want %.3f", c.Test, r.Variant, r.Start, r.Mean-start.Mean)
			}
		}
	}
	var table strings.Builder
	if err := WriteMarkdown(&table, want); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 6 {
			t.Errorf("a row of the table has not five cells: %s", line)
		}
	}

	// Stopped inside the first cell and inside the third, then resumed.
	steps := 0
	for _, last := range []int{2, 6} {
		ctx, stop := context.WithCancel(t.Context())
		part := &stepCounter{last: last, stop: stop}
		if _, err := policyStudy(t, w, filepath.Join(dir, "parts"), part).Run(ctx); !errors.Is(err, run.ErrInterrupted) {
			t.Fatalf("stopped behind step %d: %v", last, err)
		}
		steps += part.steps
	}
	rest := &stepCounter{}
	got, err := policyStudy(t, w, filepath.Join(dir, "parts"), rest).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stopped and resumed (-whole +parts):\n%s", diff)
	}
	if steps+rest.steps != whole.steps {
		t.Errorf("%d steps in parts, %d in one go: some were done twice or never", steps+rest.steps, whole.steps)
	}

	// All done: nothing trains. Another policy in the same folder is another study.
	again := &stepCounter{}
	if _, err := policyStudy(t, w, filepath.Join(dir, "parts"), again).Run(t.Context()); err != nil || again.steps != 0 {
		t.Errorf("a study that was done took %d steps: %v", again.steps, err)
	}
	if err := os.WriteFile(filepath.Join(w.Policy, "other"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := policyStudy(t, w, filepath.Join(dir, "parts"), again).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "other models") {
		t.Errorf("results of another policy were taken over: %v", err)
	}
}

func near(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }

// A missing reward model must show before the first variant, which needs none, is trained.
func TestPolicyStudyChecksAllCellsFirst(t *testing.T) {
	w, err := toy.Make(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	counter := &stepCounter{}
	s := policyStudy(t, w, t.TempDir(), counter)
	s.Matrix.Overrides = append(s.Matrix.Overrides, "reward.model=")
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `variant "clause"`) || counter.steps != 0 {
		t.Errorf("without a reward model, after %d steps: %v", counter.steps, err)
	}
}

func TestSpread(t *testing.T) {
	if diff := cmp.Diff([]int{0, 3, 6}, spread([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3)); diff != "" {
		t.Error(diff)
	}
	if got := spread([]int{4, 5}, 3); len(got) != 2 {
		t.Errorf("%v of two items", got)
	}
}
