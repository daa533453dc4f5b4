package sft

import (
	"context"
	stdsql "database/sql"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"caper/configs"
	"caper/data"
	"caper/engine"
	"caper/model"
	"caper/model/generate"
	"caper/train/run"
	"caper/train/run/runtest"
	"caper/train/settings"
)

// A policy learns to answer, and the accuracy that its best validation states is that of
// the exported model's answers, executed here without anything of ours.
func TestValidationIsExecutionAccuracy(t *testing.T) {
	c := smallConfig(t, "train.epochs=30", "train.validate_every=20")
	outcome := trained(t, c, run.Options{})
	lines, err := run.ReadMetrics[Metrics](c.Train.Out)
	if err != nil {
		t.Fatal(err)
	}
	var best Metrics
	for _, m := range lines {
		if m.Best {
			best = m
		}
	}
	if best.EXSeen == nil || *best.EX != outcome.BestEX || best.Step != outcome.BestStep || *best.EXSeen < 0.8 {
		t.Fatalf("best validation %+v, outcome %+v", best, outcome)
	}
	if first, last := *lines[0].Loss, *lines[len(lines)-2].Loss; !(last < 0.2*first) {
		t.Errorf("loss from %.3f to %.3f", first, last)
	}

	m, err := model.Load(outcome.ModelDir, engine.CPU(1), model.Frozen)
	if err != nil {
		t.Fatal(err)
	}
	ends, err := generate.EndTokens(outcome.ModelDir)
	if err != nil || len(ends) != 1 {
		t.Fatalf("end tokens %v, error %v", ends, err)
	}
	g, err := generate.New(m, generate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := opened(t, smallConfig(t))
	right := map[bool]int{}
	for i, a := range slices.Concat(r.data.seen, r.data.unseen) {
		results, err := g.Generate(t.Context(), []generate.Request{{Prompt: a.prompt, MaxTokens: 24, StopTokens: ends}})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(rows(t, r, a, results[0].Samples[0].Text), rows(t, r, a, a.question.Gold)) {
			right[i < len(r.data.seen)]++
		}
	}
	seen, unseen := len(r.data.seen), len(r.data.unseen)
	if *best.EXSeen != float64(right[true])/float64(seen) || *best.EXUnseen != float64(right[false])/float64(unseen) || best.Validated != seen+unseen {
		t.Errorf("stated %v of seen and %v of unseen databases; found %d of %d and %d of %d", *best.EXSeen, *best.EXUnseen, right[true], seen, right[false], unseen)
	}
}

// rows runs a query; nil where it fails.
func rows(t *testing.T, r *sft, a asked, query string) (all []string) {
	t.Helper()
	db, err := stdsql.Open("sqlite3", filepath.Join(r.config.Train.Benchmark, "database", a.question.DBID, a.question.DBID+".sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := db.Query(query)
	if err != nil {
		return nil
	}
	defer found.Close()
	all = []string{"rows"}
	for found.Next() {
		var value string
		if err := found.Scan(&value); err != nil {
			return []string{"several columns: " + query}
		}
		all = append(all, value)
	}
	return all
}

func TestThreadsChangeNoBit(t *testing.T) {
	c := smallConfig(t, "train.validate_every=4", "train.checkpoint_every=4")
	trained(t, c, run.Options{})
	two := c
	two.Train.Threads, two.Train.Checkpointing, two.Train.Out = 2, "full", filepath.Join(t.TempDir(), "two")
	trained(t, two, run.Options{})
	runtest.Same(t, two.Train.Out, c.Train.Out, volatile...)
}

func TestInterruptedAndResumed(t *testing.T) {
	c := smallConfig(t, "train.validate_every=2", "train.checkpoint_every=3")
	whole := c
	whole.Train.Out = filepath.Join(t.TempDir(), "whole")
	trained(t, whole, run.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Train(ctx, c, run.Options{Progress: runtest.Progress(func(done, _ int) {
		if done == 4 {
			cancel()
		}
	})})
	if !errors.Is(err, run.ErrInterrupted) || !strings.Contains(err.Error(), "--resume") {
		t.Fatalf("error %v", err)
	}
	trained(t, c, run.Options{Resume: true})
	runtest.Same(t, c.Train.Out, whole.Train.Out, volatile...)
}

func TestKilledAndResumed(t *testing.T) {
	c := smallConfig(t, "train.epochs=12", "train.validate_every=2", "train.checkpoint_every=2")
	runtest.KilledAndResumed(t, 10, func(out string) string {
		c.Train.Out = out
		path := out + ".toml"
		if err := os.WriteFile(path, []byte(c.Text()), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}, volatile...)
}

// A run with a target ends when it is reached, for good, with the model that reached it.
func TestStopsAtItsTarget(t *testing.T) {
	c := smallConfig(t, "train.epochs=60", "train.validate_every=5", "train.stop_at_ex=0.3")
	outcome := trained(t, c, run.Options{})
	if outcome.Stopped == "" || outcome.BestEX < 0.3 || outcome.BestStep != outcome.Steps || outcome.Steps >= 240 {
		t.Errorf("%+v", outcome)
	}
	before := runtest.Files(t, c.Train.Out)
	if again := trained(t, c, run.Options{Resume: true}); again.Stopped != outcome.Stopped || again.Steps != outcome.Steps {
		t.Errorf("resumed: %+v", again)
	}
	if !reflect.DeepEqual(before, runtest.Files(t, c.Train.Out)) {
		t.Error("resuming a stopped run changed files")
	}
}

// Questions are held out by database and by question, and nothing held out is learned from.
func TestNothingHeldOutIsLearned(t *testing.T) {
	r := opened(t, smallConfig(t))
	if len(r.data.seen) != 5 || len(r.data.unseen) != 9 || len(r.data.examples) != 22 {
		t.Errorf("%d and %d held out, %d to learn from", len(r.data.seen), len(r.data.unseen), len(r.data.examples))
	}
	trainedOn := map[string]bool{}
	for _, e := range r.data.examples {
		trainedOn[e.db] = true
	}
	for _, a := range r.data.unseen {
		if trainedOn[a.question.DBID] {
			t.Errorf("database %s is on both sides", a.question.DBID)
		}
	}
	for _, a := range r.data.seen {
		if !trainedOn[a.question.DBID] {
			t.Errorf("database %s counts as seen and is not", a.question.DBID)
		}
	}
	for _, b := range r.data.bundles {
		for _, e := range b {
			if e.db != b[0].db || len(b) > 3 {
				t.Errorf("a bundle of %d queries of %s and %s", len(b), e.db, b[0].db)
			}
		}
	}
}

// Of candidates with a verdict those that are correct are learned from, once each, and
// none of a question that is held out.
func TestLearnsFromCorrectCandidates(t *testing.T) {
	c := smallConfig(t)
	plain := opened(t, c)
	questions, err := plain.bench.Questions("train")
	if err != nil {
		t.Fatal(err)
	}
	var candidates []data.Rollout
	for i, q := range questions {
		for j, verdict := range []string{`"correct"`, `"correct"`, `"wrong"`} {
			sql := []string{q.Gold, q.Gold, "SELECT 7"}[j]
			candidates = append(candidates, data.Rollout{QuestionID: data.IndexID(i), DBID: q.DBID, SQL: sql, Extra: data.Extra{"verdict": []byte(verdict)}})
		}
	}
	path := filepath.Join(t.TempDir(), "verdicts.jsonl")
	if err := data.WriteRollouts(path, slices.Values(candidates)); err != nil {
		t.Fatal(err)
	}
	c.Train.Rollouts, c.Train.Out = []string{path}, filepath.Join(t.TempDir(), "rollouts")
	r := opened(t, c)
	if len(r.data.examples) != len(plain.data.examples) {
		t.Errorf("%d queries, of gold %d", len(r.data.examples), len(plain.data.examples))
	}
	for _, e := range r.data.examples {
		if text := r.run.Model.Tokenizer.Decode(e.tokens[e.prompt:], false); strings.Contains(text, "7") {
			t.Errorf("learns %q", text)
		}
	}
}

// An adapter goes on from a policy, and leaves an adapter.
func TestLoRA(t *testing.T) {
	first := trained(t, smallConfig(t, "train.max_steps=2"), run.Options{})
	outcome := trained(t, smallConfig(t, "model.path="+first.ModelDir, "lora.rank=2", "train.max_steps=2"), run.Options{})
	if _, err := os.Stat(filepath.Join(outcome.ModelDir, "adapter_model.safetensors")); err != nil {
		t.Error(err)
	}
	if ends, err := generate.EndTokens(outcome.ModelDir); err != nil || len(ends) != 1 {
		t.Errorf("end tokens %v, error %v", ends, err)
	}
}

// Each refusal says what to do, and touches nothing.
func TestRefusals(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for override, want := range map[string][]string{
		"train.bench=":                   {"train.bench", "name the benchmark"},
		"train.bench=gone":               {"train.bench", "gone"},
		"train.split=dev":                {"train.split", "dev.json"},
		"train.out=":                     {"train.out"},
		"train.rollouts=gone.jsonl":      {"train.rollouts", "gone.jsonl"},
		"train.rollouts=" + empty:        {"train.rollouts", "no correct candidate"},
		"train.holdout_databases=1":      {"train.holdout_databases", "4 databases"},
		"train.holdout_questions=1":      {"holdout_questions", "nothing to train on"},
		"train.max_length=10":            {"train.max_length", "raise it"},
		"train.validate_cache_tokens=64": {"train.validate_cache_tokens"},
		"model.path=nowhere":             {"nowhere"},
	} {
		t.Run(override, func(t *testing.T) {
			c := smallConfig(t, override)
			_, err := Train(t.Context(), c, run.Options{})
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v", err)
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %q", err, part)
				}
			}
			if _, err := os.Stat(c.Train.Out); c.Train.Out != "" && !os.IsNotExist(err) {
				t.Errorf("%s was left behind", c.Train.Out)
			}
		})
	}
	for override, want := range map[string]string{
		"train.chat=true":          "model.path",
		"train.epochs=0":           "above 0",
		"train.stop_at_ex=2":       "[0, 1]",
		"train.batch_querys=3":     "train.batch_queries",
		"train.queries_together=0": "above 0",
	} {
		if _, err := LoadConfig("", []string{override}); !errors.As(err, new(*settings.Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", override, err)
		}
	}
	if _, err := LoadConfig("", []string{"train.stop_at_ex=0.5", "train.holdout_databases=0", "train.holdout_questions=0"}); err == nil || !strings.Contains(err.Error(), "nothing is held out") {
		t.Errorf("error %v", err)
	}
}

func TestShippedConfig(t *testing.T) {
	const name = "sft-tiny.toml"
	text, err := configs.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseConfig(text, name, nil); err != nil {
		t.Error(err)
	}
}
