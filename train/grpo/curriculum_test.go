package grpo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"caper/data"
	"caper/train/curriculum"
)

// A run with a sampling table draws the questions that have a weight, siblings that the
// split does not have among them, and no others.
func TestCurriculum(t *testing.T) {
	w := newWorld(t)
	var lines []string
	for i, weight := range []float64{0, 0.75, 0.25} {
		line, err := json.Marshal(map[string]any{"question_id": "q" + string(rune('0'+i)), "db_id": "zoo", "question": "asked " + string(rune('a'+i)),
			"query": "SELECT max(weight) FROM animal", "origin": "benchmark", "right": 1, "answers": 2, "weight": weight})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	table := filepath.Join(t.TempDir(), "table.jsonl")
	if err := os.WriteFile(table, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := smallConfig(t, "train.curriculum="+table, "train.batch_questions=1", "train.max_steps=24", "train.bench="+w.Bench)
	out, err := Train(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out.Questions != 2 {
		t.Errorf("%d questions to learn from, want 2", out.Questions)
	}
	text, err := os.ReadFile(filepath.Join(c.Train.Out, "rollouts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	a, b, others := strings.Count(string(text), "asked b"), strings.Count(string(text), "asked c"), strings.Count(string(text), "asked a")+strings.Count(string(text), "all species")
	if a <= b || b == 0 || others > 0 {
		t.Errorf("of weights 3 to 1, and 0: %d, %d and %d answers", a, b, others)
	}
	c = smallConfig(t, "train.curriculum="+table+".none")
	if _, err := Train(t.Context(), c, Options{}); err == nil || !strings.Contains(err.Error(), "train.curriculum") {
		t.Errorf("a table that is not there: %v", err)
	}
}

// Rates depend on a question's index, not on where the asking began; a prompt that is too
// long has none.
func TestRates(t *testing.T) {
	w := newWorld(t)
	bench, err := data.OpenBenchmark(w.Bench, "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	questions, err := bench.Questions("train")
	if err != nil {
		t.Fatal(err)
	}
	questions = slices.Concat(questions, questions)
	questions[1].Question = strings.Repeat("long ", 300)
	ask := func(first int) (all []curriculum.Rate) {
		r, err := OpenRater(t.Context(), smallConfig(t, "rollout.max_prompt=400"), 5, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for rate, err := range r.Rates(t.Context(), questions, first) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, rate)
		}
		return all
	}
	whole := ask(0)
	right := 0
	for i, rate := range whole {
		right += rate.Right
		if i != 1 && rate.Answers != 5 || i == 1 && (rate.Answers != 0 || rate.Missing == "") {
			t.Errorf("question %d: %+v", i, rate)
		}
	}
	if right == 0 || right == 5*(len(questions)-1) {
		t.Errorf("%d answers are right: the policy has half learned to answer", right)
	}
	if rest := ask(4); !slices.Equal(rest, whole[4:]) {
		t.Errorf("rates %v from the fifth question on, %v when asked from the first", rest, whole[4:])
	}
}
