package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestEvalCommands runs each measure on the workshop's rollouts and reads what it left.
func TestEvalCommands(t *testing.T) {
	w := openWorkshop(t)
	dir := t.TempDir()
	count := strings.Count(readFile(t, w.rollouts), "\n")
	for _, c := range []struct {
		command, field string
		more           []string
	}{
		{"em", "em", []string{"--explain"}},
		{"em", "em", []string{"--script", "test-suite", "--without", "value-word,fk-merged"}},
		{"softf1", "soft_f1", nil},
		{"ves", "ves_median", []string{"--repeats", "2"}},
		{"rves", "rves", []string{"--repeats", "2"}},
		{"ex", "ex", []string{"--rule", "spider", "--explain"}},
		{"ex", "ex", []string{"--rule", "test-suite", "--without", "distinct-stripped"}},
	} {
		out := filepath.Join(dir, "out.jsonl")
		arguments := append([]string{"eval", c.command, "--bench", w.bench, "--split", "train", "--pred", w.rollouts, "--out", out}, c.more...)
		if r := must(t, arguments...); r.stderr == "" || r.stdout != "" {
			t.Errorf("%v prints %q to stdout", arguments, r.stdout)
		}
		r := must(t, append(arguments, "--json")...)
		var summary map[string]any
		if err := json.Unmarshal([]byte(r.stdout), &summary); err != nil {
			t.Fatal(err)
		}
		if share, ok := summary[c.field].(float64); !ok || share <= 0 || summary["count"] != float64(count) {
			t.Errorf("%v: %s %v of %v candidates, want %d", arguments, c.field, summary[c.field], summary["count"], count)
		}
		for _, line := range lines(readFile(t, out)) {
			var verdict struct {
				QuestionID any `json:"question_id"`
				Source     string
				Verdict    string
			}
			if err := json.Unmarshal([]byte(line), &verdict); err != nil || verdict.QuestionID == nil || verdict.Source == "" || verdict.Verdict == "" {
				t.Fatalf("%v: line %s: %v", arguments, line, err)
			}
		}
	}
	for flag, want := range map[string]string{"--rule=none": "want spider", "--without=none": "want some of"} {
		r := caper(t, "eval", "ex", "--bench", w.bench, "--split", "train", "--pred", w.rollouts, "--out", filepath.Join(dir, "out.jsonl"), flag)
		if r.status != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: status %d: %s", flag, r.status, r.stderr)
		}
	}
}

// TestEvalCompare compares gold with predictions that are all wrong but one.
func TestEvalCompare(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string { return writeFile(t, filepath.Join(dir, name), text) }
	var a, b strings.Builder
	for i := range 10 {
		line := func(source, verdict string) string {
			text, err := json.Marshal(map[string]any{"question_id": i, "db_id": "d", "sql": "SELECT 1", "source": source, "verdict": verdict,
				"metric": "ex", "rule": "bird"})
			if err != nil {
				t.Fatal(err)
			}
			return string(text) + "\n"
		}
		a.WriteString(line("good", "correct"))
		if i == 0 {
			b.WriteString(line("bad", "correct"))
		} else {
			b.WriteString(line("bad", "wrong"))
		}
	}
	good, bad := write("good.jsonl", a.String()), write("bad.jsonl", b.String())
	r := must(t, "eval", "compare", good, bad, "--json")
	var c struct {
		OnlyA int     `json:"only_a"`
		Both  int     `json:"both"`
		P     float64 `json:"p"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &c); err != nil || c.OnlyA != 9 || c.Both != 1 || c.P < 2.0/513 || c.P > 2.0/511 {
		t.Errorf("%s %v", r.stdout, err)
	}
	both := write("both.jsonl", a.String()+b.String())
	if r := must(t, "eval", "compare", both, both, "--source-a", "good", "--source-b", "bad"); !strings.Contains(r.stderr, "only A right 9") {
		t.Error(r.stderr)
	}
	for _, arguments := range [][]string{{both, bad}, {good, bad, "--source-a", "other"}, {good, bad, "--rule", "bird"}, {good, bad, "--not-db", "d"}} {
		if r := caper(t, append([]string{"eval", "compare"}, arguments...)...); r.status != exitUsage {
			t.Errorf("%v: status %d: %s", arguments, r.status, r.stderr)
		}
	}
	unjudged := write("unjudged.jsonl", `{"question_id":0,"db_id":"d","sql":"SELECT 1"}`+"\n")
	if r := caper(t, "eval", "compare", good, unjudged); r.status != exitFailed || !strings.Contains(r.stderr, "--bench") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
}
