package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/data"
	"caper/train/plan"
)

// The plan of a published size, and the same model from a folder's config.json.
func TestPlan(t *testing.T) {
	var p plan.Plan
	if err := json.Unmarshal([]byte(must(t, "plan", "--model", "qwen3.5-0.8b", "--gpus", "2", "--json").stdout), &p); err != nil {
		t.Fatal(err)
	}
	if p.Weights.Parameters != 752393024 || p.Weights.Release.TensorSize != 1746882752 || len(p.Fits) != 12 || p.Sharing != nil {
		t.Errorf("%+v", p)
	}
	r := must(t, "plan", "--model", "0.8B", "--lora", "8", "--memory", "16", "--peak", "100")
	for _, want := range []string{"752,393,024", "trained", "16 GB", "100 TFLOP/s"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in %s", want, r.stderr)
		}
	}
	if r := must(t, "plan", "--model", "9B", "--dry-run"); !strings.Contains(r.stdout, "[248320 x 4096]") {
		t.Errorf("no head among the launches of a dry run: %.300s", r.stdout)
	}
}

// An epoch of a tuple file and of a rollout file, by bytes: each prompt once in a tree.
func TestPlanOfData(t *testing.T) {
	dir := t.TempDir()
	prompt := strings.Repeat("p", 340)
	tuple := data.Tuple{
		DBID: "d", Prompt: prompt, Prefix: "SELECT a ", Chosen: "FROM b", Rejected: "FROM c", SQLChosen: "SELECT a FROM b", SQLRejected: "SELECT a FROM c",
		Clause: "FROM", ClauseIndex: 1, ClauseCount: 2, Source: "injection", Operator: "from.table", Reward: -1, Margin: 1, EditCost: 1,
		Root: data.Root{Start: 14, End: 15, Kind: "table"}, RootClause: true,
	}
	tuple.ID = tuple.ContentID()
	tuples := filepath.Join(dir, "tuples.jsonl")
	if err := data.WriteTuples(tuples, slices.Values([]data.Tuple{tuple})); err != nil {
		t.Fatal(err)
	}
	rollouts := writeFile(t, filepath.Join(dir, "rollouts.jsonl"), strings.Repeat(`{"question_id":1,"db_id":"d","question":"q","gold":"SELECT 1","sql":"SELECT a FROM b","source":"m","prompt":"`+prompt+`"}`+"\n", 4))
	for _, c := range []struct {
		flag, file       string
		separate, packed float64 // bytes
	}{{"--tuples", tuples, 710, 356}, {"--rollouts", rollouts, 4 * 355, 355}} {
		var p plan.Plan
		if err := json.Unmarshal([]byte(must(t, "plan", "--model", "0.8B", c.flag, c.file, "--json").stdout), &p); err != nil {
			t.Fatal(err)
		}
		s := p.Sharing
		if s == nil || !s.Estimated || s.Prompts != 1 || int(s.Separate*3.5+0.5) != int(c.separate) || int(s.Packed*3.5+0.5) != int(c.packed) || s.PackedHours >= s.SeparateHours {
			t.Errorf("%s: %+v, want %g and %g bytes", c.flag, s, c.separate, c.packed)
		}
	}
}

// A configuration is planned, with overrides, in place of a model.
func TestPlanOfConfiguration(t *testing.T) {
	path := filepath.Join("..", "..", "configs", "caper-9b-grpo.toml")
	var n plan.Needs
	if err := json.Unmarshal([]byte(must(t, "plan", "--config", path, "--items", "480", "--json").stdout), &n); err != nil {
		t.Fatal(err)
	}
	if n.Stage != "grpo" || n.Steps != 10 || !n.Fits || n.Load.Continuations != 48*8 {
		t.Errorf("%+v", n)
	}
	if r := must(t, "plan", "--config", path, "lora.rank=0"); !strings.Contains(r.stderr, "does not fit") || !strings.Contains(r.stderr, "not implemented yet") {
		t.Errorf("all weights of 9B on one card: %s", r.stderr)
	}
	for want, words := range map[string][]string{
		"give one of":     {"plan"},
		"overrides":       {"plan", "--model", "9B", "train.lr=1"},
		`nearest is "tra`: {"plan", "--config", path, "train.lrr=1"},
		"--gpus":          {"plan", "--config", path, "--gpus", "8"},
	} {
		if r := caper(t, words...); r.status != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: status %d, %s", words, r.status, r.stderr)
		}
	}
}
