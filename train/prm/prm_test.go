package prm

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/data"
	"caper/engine"
	"caper/model"
	"caper/train/run"
	"caper/train/run/runtest"
)

func TestLossGoesDown(t *testing.T) {
	c := smallConfig(t, "train.epochs=20", "train.validate_every=30", "train.holdout_databases=0.25")
	outcome := trained(t, c, run.Options{})
	lines, err := run.ReadMetrics[Metrics](c.Train.Out)
	if err != nil {
		t.Fatal(err)
	}
	var losses, right []float64
	validations := 0
	for _, m := range lines {
		if m.Top1 != nil {
			validations++
			continue
		}
		losses, right = append(losses, *m.Loss), append(right, *m.Accuracy)
		if m.Tokens >= m.Unpacked || m.Pairs == 0 {
			t.Errorf("step %d: %d tokens for %d unpacked ones, %d pairs", m.Step, m.Tokens, m.Unpacked, m.Pairs)
		}
	}
	if len(losses) != 60 || outcome.Steps != 60 || outcome.Questions != 9 || outcome.Pairs != 18 || validations != 2 {
		t.Errorf("%d steps, %d validations, outcome %+v", len(losses), validations, outcome)
	}
	first, last := mean(losses[:6]), mean(losses[54:])
	if !(first > 0.6 && last < 0.3 && mean(right[54:]) > 0.85) {
		t.Errorf("loss from %.3f to %.3f, last accuracy %.3f", first, last, mean(right[54:]))
	}
	m, err := model.Load(outcome.ModelDir, engine.CPU(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.NewScorer(m, 0); err != nil {
		t.Errorf("the exported model scores no clauses: %v", err)
	}
}

// Products rounded to bfloat16 train to nearly the same loss, and with them too two
// threads give the bits of one.
func TestBFloat16TrainsAlike(t *testing.T) {
	losses := func(overrides ...string) (all []float64) {
		c := smallConfig(t, append(overrides, "train.epochs=20")...)
		trained(t, c, run.Options{})
		lines, err := run.ReadMetrics[Metrics](c.Train.Out)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lines {
			if m.Loss != nil {
				all = append(all, *m.Loss)
			}
		}
		return all
	}
	exact, rounded := losses("train.precision=fp32"), losses("train.precision=bf16")
	if slices.Equal(exact, rounded) {
		t.Error("the losses are those of float32 to the bit: nothing was rounded")
	}
	// Rounding moves a loss by some 2^-9 of the scores' size at first; the two runs drift
	// apart as any two do that differ in rounding, and end equally well.
	for i := range 6 {
		if difference := math.Abs(exact[i] - rounded[i]); !(difference < 0.02) {
			t.Errorf("step %d: loss %.4f with float32, %.4f with bfloat16", i, exact[i], rounded[i])
		}
	}
	if a, b := mean(exact[54:]), mean(rounded[54:]); !(math.Abs(a-b) < 0.1) {
		t.Errorf("the last losses are %.3f with float32, %.3f with bfloat16", a, b)
	}
	if two := losses("train.precision=bf16", "train.threads=2"); !slices.Equal(rounded, two) {
		t.Error("two threads change the losses")
	}
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func TestThreadsAndCheckpointingChangeNoBit(t *testing.T) {
	c := smallConfig(t, "train.validate_every=4", "train.checkpoint_every=4")
	trained(t, c, run.Options{})
	two := c
	two.Train.Threads, two.Train.Checkpointing, two.Train.Out = 2, "full", filepath.Join(t.TempDir(), "two")
	trained(t, two, run.Options{})
	want, got := runFiles(t, c.Train.Out), runFiles(t, two.Train.Out)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s differs between one thread and two with checkpointing", name)
		}
	}
	if !strings.Contains(want["model/config.json"], "caper_clause_token") || len(want) != len(got) {
		t.Errorf("%d and %d files", len(want), len(got))
	}
}

// interruptAt runs with a context that ends at a step.
func interruptAt(t *testing.T, c Config, step int) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Train(ctx, c, run.Options{Progress: runtest.Progress(func(done, _ int) {
		if done == step {
			cancel()
		}
	})})
	return err
}

// An interruption is noticed before a step, in the middle of one, and in the
// validation after it: each time the run goes on as if nothing had been.
func TestInterruptedAndResumed(t *testing.T) {
	c := smallConfig(t, "train.validate_every=2", "train.checkpoint_every=3", "train.threads=1")
	whole := c
	whole.Train.Out = filepath.Join(t.TempDir(), "whole")
	trained(t, whole, run.Options{})
	for _, step := range []int{1, 3, 4} {
		c.Train.Out = filepath.Join(t.TempDir(), "run")
		err := interruptAt(t, c, step)
		if !errors.Is(err, run.ErrInterrupted) || !strings.Contains(err.Error(), "--resume") {
			t.Fatalf("interrupted at step %d: error %v", step, err)
		}
		c.Train.Threads = 2 // changes no result: allowed
		trained(t, c, run.Options{Resume: true})
		c.Train.Threads = 1
		sameRun(t, c.Train.Out, whole.Train.Out)
	}
	// A finished run that is resumed is finished.
	outcome := trained(t, whole, run.Options{Resume: true})
	if outcome.Steps != 9 {
		t.Errorf("%+v", outcome)
	}
}

func TestPatienceStopsForGood(t *testing.T) {
	c := smallConfig(t, "train.epochs=50", "train.validate_every=1", "train.patience=2", "train.lr=1e-12")
	outcome := trained(t, c, run.Options{})
	if outcome.Stopped == "" || outcome.Steps != 3 || outcome.BestStep != 1 {
		t.Errorf("%+v", outcome)
	}
	before := runFiles(t, c.Train.Out)
	if again := trained(t, c, run.Options{Resume: true}); again.Stopped == "" || again.Steps != outcome.Steps {
		t.Errorf("resumed: %+v", again)
	}
	for name, text := range runFiles(t, c.Train.Out) {
		if before[name] != text {
			t.Errorf("resuming a stopped run changed %s", name)
		}
	}
}

// Each refusal says what to do, and touches nothing.
func TestRefusals(t *testing.T) {
	c := smallConfig(t, "train.checkpoint_every=1", "train.max_steps=2")
	trained(t, c, run.Options{})
	before := runFiles(t, c.Train.Out)
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := os.WriteFile(broken, []byte("{\"id\": \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(t.TempDir(), "fresh")
	for name, k := range map[string]struct {
		change func(c *Config)
		resume bool
		want   []string
	}{
		"a run is there":  {func(*Config) {}, false, []string{"step 2", "--resume", "train.out"}},
		"another config":  {func(c *Config) { c.Train.LR *= 2 }, true, []string{"train.lr = ", "another value", "config.toml", "train.out"}},
		"no out":          {func(c *Config) { c.Train.Out = "" }, false, []string{"train.out"}},
		"no tuples":       {func(c *Config) { c.Train.Out, c.Train.Tuples = fresh, nil }, false, []string{"train.tuples"}},
		"missing tuples":  {func(c *Config) { c.Train.Out, c.Train.Tuples = fresh, []string{"gone.jsonl"} }, false, []string{"gone.jsonl"}},
		"broken tuples":   {func(c *Config) { c.Train.Out, c.Train.Tuples = fresh, []string{broken} }, false, []string{broken + ":1"}},
		"all held out":    {func(c *Config) { c.Train.Out, c.Train.HoldoutDatabases = fresh, 1 }, false, []string{"train.holdout_databases", "4 databases"}},
		"all too long":    {func(c *Config) { c.Train.Out, c.Train.MaxLength = fresh, 3 }, false, []string{"train.max_length"}},
		"odd shape":       {func(c *Config) { c.Train.Out, c.Model.KeyValueHeads = fresh, 3 }, false, []string{"num_key_value_heads"}},
		"no layers":       {func(c *Config) { c.Train.Out, c.Model.FullAttentionGap = fresh, 0 }, false, []string{"full_attention_interval"}},
		"tiny vocabulary": {func(c *Config) { c.Train.Out, c.Model.VocabularySize = fresh, 17 }, false, []string{"vocab_size"}},
		"no model":        {func(c *Config) { c.Train.Out, c.Model.Path = fresh, "nowhere" }, false, []string{"nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			changed := c
			k.change(&changed)
			_, err := Train(t.Context(), changed, run.Options{Resume: k.resume})
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v", err)
			}
			for _, want := range k.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q", err, want)
				}
			}
			if _, err := os.Stat(fresh); !os.IsNotExist(err) {
				t.Errorf("%s was left behind", fresh)
			}
		})
	}
	for name, text := range runFiles(t, c.Train.Out) {
		if before[name] != text {
			t.Errorf("%s was changed", name)
		}
	}
}

// A run can start from a folder: a reward model goes on, a language model gets a
// score head.
func TestStartsFromAFolder(t *testing.T) {
	c := smallConfig(t, "train.max_steps=2")
	outcome := trained(t, c, run.Options{})
	c.Model.Path, c.Train.Out = outcome.ModelDir, filepath.Join(t.TempDir(), "second")
	second := trained(t, c, run.Options{})
	if a, b := fileText(t, outcome.ModelDir, "tokenizer.json"), fileText(t, second.ModelDir, "tokenizer.json"); a != b {
		t.Error("the tokenizer changed")
	}

	reward, err := model.Load(outcome.ModelDir, engine.CPU(1))
	if err != nil {
		t.Fatal(err)
	}
	language, err := model.New(model.Config{Text: reward.Config.Text}, engine.CPU(1), 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := language.SetTokenizer(reward.Tokenizer); err != nil {
		t.Fatal(err)
	}
	c.Model.Path, c.Train.Out = t.TempDir(), filepath.Join(t.TempDir(), "third")
	if err := language.Save(c.Model.Path); err != nil {
		t.Fatal(err)
	}
	third := trained(t, c, run.Options{})
	m, err := model.Load(third.ModelDir, engine.CPU(1))
	if err != nil || m.Score == nil || m.Config.ClauseToken != c.Model.ClauseToken || m.Config.EndToken != c.Model.EndToken {
		t.Errorf("model %+v, error %v", m, err)
	}
}

func fileText(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Pairs past the length limit are left out and counted, the others stay.
func TestTooLongPairs(t *testing.T) {
	tuples := smallTuples()
	long := tuples[0]
	long.Question = "long"
	long.Prompt += strings.Repeat("very ", 300)
	long.ID = long.ContentID()
	c := smallConfig(t, "train.max_length=250", "train.holdout_databases=0", "train.max_steps=1")
	c.Train.Tuples = []string{writeSmallTuples(t, append([]data.Tuple{long}, tuples...))}
	outcome := trained(t, c, run.Options{})
	if outcome.TooLong != 1 || outcome.Pairs != len(tuples) || outcome.Questions != 12 || outcome.BestStep != 0 {
		t.Errorf("%+v", outcome)
	}
}
