package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Runs of several turns are labelled by execution; what the line held is kept.
func TestTrajectories(t *testing.T) {
	w := openWorkshop(t)
	var first struct {
		DBID string `json:"db_id"`
		Gold string `json:"gold"`
	}
	if err := json.Unmarshal([]byte(lines(readFile(t, w.rollouts))[0]), &first); err != nil {
		t.Fatal(err)
	}
	gold, err := json.Marshal(first.Gold)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	in := writeFile(t, filepath.Join(dir, "runs.jsonl"), fmt.Sprintf(`{"dev_idx": 0, "run": "m", "actions": ["SHOW TABLES", "SELECT 17 AS n", %s], "observations": ["a", "b", "c"], "success": false}
{"dev_idx": 0, "run": "m", "actions": [%s, "SELECT what FROM nowhere"]}
`, gold, gold))
	out := filepath.Join(dir, "labels.jsonl")
	r := must(t, "trajectories", "--bench", w.bench, "--split", "train", "--in", in, "--out", out)
	if !strings.Contains(r.stderr, "2 runs: 1 correct, 0 mendable, 1 lost, 0 without a query") || !strings.Contains(r.stderr, "lost from turn 1 on  1") || r.stdout != "" {
		t.Errorf("%+v", r)
	}
	labels := lines(readFile(t, out))
	for i, want := range []string{`"outcome":"correct"`, `"lost_turn":1`} {
		if len(labels) != 2 || !strings.Contains(labels[i], want) || !strings.Contains(labels[i], `"source":"m"`) {
			t.Errorf("%s lacks %s", labels[i], want)
		}
	}
	if !strings.Contains(labels[0], `"observations":["a","b","c"]`) || !strings.Contains(labels[0], `"lost_turn":null`) {
		t.Error(labels[0])
	}

	// The same file holds rollouts: the queries of all turns.
	r = must(t, "annotate", "--bench", w.bench, "--split", "train", "--rollouts", in, "--out", filepath.Join(dir, "tuples.jsonl"), "--json")
	if d := oneDocument(t, r); d["rollouts"] != 4.0 {
		t.Errorf("%v", d["rollouts"])
	}

	r = must(t, "trajectories", "--bench", w.bench, "--split", "train", "--in", in, "--out", out, "--json")
	if d := oneDocument(t, r); d["trajectories"] != 2.0 || d["refuted"] != 1.0 {
		t.Errorf("%v", d)
	}
	// A run without a turn has an empty list of turns.
	in = writeFile(t, in, `{"dev_idx": 0, "actions": []}`)
	r = must(t, "trajectories", "--bench", w.bench, "--split", "train", "--in", in, "--out", out)
	if !strings.Contains(r.stderr, "1 run: 0 correct, 0 mendable, 0 lost, 1 without a query") || !strings.Contains(readFile(t, out), `"turns":[]`) {
		t.Errorf("%s %s", r.stderr, readFile(t, out))
	}
	// The sample's ids are numbers.
	in = writeFile(t, in, `{"question_id": "0", "actions": []}`)
	r = caper(t, "trajectories", "--bench", w.bench, "--split", "train", "--in", in, "--out", out)
	if r.status != exitFailed || !strings.Contains(r.stderr, "without quotes") {
		t.Errorf("%+v", r)
	}
	r = caper(t, "trajectories", "--bench", w.bench, "--split", "train", "--in", w.rollouts, "--out", out)
	if r.status != exitFailed || !strings.Contains(r.stderr, ":1: actions: missing") {
		t.Errorf("%+v", r)
	}
}
