package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/data/sample"
)

// tinyDemo takes every step of the demonstration, and nothing more than that.
func tinyDemo() demoSize {
	s := fullDemo()
	s.bench = sample.DefaultOptions()
	s.bench.TrainDatabases, s.bench.TestDatabases, s.bench.NewWordsDatabases = 4, 2, 2
	s.bench.Questions, s.bench.DevQuestions, s.bench.LargeRows = 6, 2, 50
	s.variants = []variant{method, withoutPropagation}
	s.prm = []string{"model.hidden_size=32", "train.holdout_databases=0.3"}
	for i := range s.variants {
		s.variants[i].overrides = []string{"train.max_steps=2"}
	}
	s.seeds, s.questions = 2, 6
	// The policy learns its few questions by heart: without any right answer there is
	// nothing to learn from.
	s.sft = []string{"model.hidden_size=64", "model.num_hidden_layers=2", "model.intermediate_size=64", "train.batch_queries=6", "train.epochs=1000",
		"train.holdout_databases=0", "train.holdout_questions=0", "train.validate_every=0", "train.max_steps=100"}
	s.whole = append(slices.Clip(s.sft), "train.max_steps=2")
	s.answered, s.verified = 24, 3
	s.ownPRM = []string{"train.max_steps=1", "train.holdout_databases=0"}
	s.grpo = []string{"train.max_steps=1", "train.batch_questions=4", "train.validate_questions=2"}
	s.note = "of a tiny run"
	return s
}

func TestDemo(t *testing.T) {
	d := &demo{dir: filepath.Join(t.TempDir(), "demo"), seed: 1, size: tinyDemo(), log: slog.New(slog.DiscardHandler)}
	if err := d.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"default", "policy/seed-1/start", "policy/seed-1/whole", "policy/seed-1/prm", "policy/seed-2/clause", "policy/seed-1/sparse", "policy/seed-2/token"} {
		if _, err := os.Stat(filepath.Join(d.dir, name, "model", "model.safetensors")); err != nil {
			t.Error(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(d.dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{"localisation", "examples", "tuples", "training", "policy", "variants", "verification", "how"} {
		if !strings.Contains(string(page), `id="`+section+`"`) {
			t.Errorf("the page has no section %s", section)
		}
	}
	if want := "of a tiny run"; !strings.Contains(string(page), want) {
		t.Errorf("the page does not say %q", want)
	}
}
