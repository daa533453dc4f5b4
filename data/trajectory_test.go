package data

import (
	"strings"
	"testing"
)

func TestTrajectories(t *testing.T) {
	b := open(t, spiderFolder(t))
	path := write(t, t.TempDir(), "runs.jsonl", `{"dev_idx": 1, "run": "m", "db_id": "zoo", "actions": ["SHOW TABLES", "SELECT 1", "hm", "select 2"], "success": false, "rewards": [0, 1]}
{"question_id": "k-7", "source": "n", "actions": [], "gold": "SELECT 9"}
`)
	list, err := collect(ReadTrajectories(path, b, "dev"))
	if err != nil || len(list) != 2 {
		t.Fatalf("%d: %v", len(list), err)
	}
	first, second := list[0], list[1]
	if first.QuestionID != second.QuestionID || first.Source != "m" || first.Gold == "" || first.Question == "" || first.Dataset != b.Name ||
		len(first.Actions) != 4 || first.Success == nil || *first.Success || string(first.Extra["rewards"]) != "[0, 1]" {
		t.Errorf("%+v", first)
	}
	if second.Success != nil || second.Gold != "SELECT 9" || second.DBID != "zoo" {
		t.Errorf("%+v", second)
	}

	// The queries among the actions are rollouts, their turns samples.
	rollouts, err := collect(ReadRollouts(path, b, "dev"))
	if err != nil || len(rollouts) != 2 {
		t.Fatalf("%d: %v", len(rollouts), err)
	}
	if r := rollouts[1]; r.SQL != "select 2" || r.Sample != 3 || r.Source != "m" || r.Gold != first.Gold || r.DBID != "zoo" {
		t.Errorf("%+v", r)
	}
}

func TestBrokenTrajectories(t *testing.T) {
	b := open(t, spiderFolder(t))
	for _, c := range []struct{ line, want string }{
		{`{"dev_idx": 0}`, "actions: missing"},
		{`{"dev_idx": 0, "actions": null}`, "actions: missing"},
		{`{"dev_idx": 0, "actions": "SELECT 1"}`, "actions: want list, have string"},
		{`{"dev_idx": 0, "actions": [1]}`, "actions: "},
		{`{"dev_idx": 99, "actions": []}`, "question 99"},
		{`{"question_id": "none", "actions": []}`, "question_id: none"},
		{`{"actions": []}`, "question_id: missing"},
		{`{"dev_idx": 0, "db_id": "other", "actions": []}`, "db_id"},
		{`{"dev_idx": 0, "actions": []`, "not JSON"},
	} {
		_, err := collect(ReadTrajectories(write(t, t.TempDir(), "runs.jsonl", c.line), b, "dev"))
		if err == nil || !strings.Contains(err.Error(), "runs.jsonl:1: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.line, err)
		}
	}
}
