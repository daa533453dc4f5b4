package grpo

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"caper/data"
	"caper/train/curriculum"
)

// The greedy figure must be that of one greedy answer to each question as a rater counts
// it, and the vote that of the samples.
func TestMeasure(t *testing.T) {
	c := smallConfig(t, "rollout.temperature=1")
	bench, err := data.OpenBenchmark(c.Train.Benchmark, "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	questions, err := bench.Questions("dev")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Measure(t.Context(), c, questions, 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.EX) != len(questions) || len(m.MV) != len(questions) || m.TooLong != 0 {
		t.Fatalf("%d and %d outcomes, %d too long, of %d questions", len(m.EX), len(m.MV), m.TooLong, len(questions))
	}
	for i, q := range questions {
		if want := q.DBID + "\x00" + q.ID.String(); m.EX[i].Question != want || m.MV[i].Question != want {
			t.Errorf("outcome %d is of %q and %q, want %q", i, m.EX[i].Question, m.MV[i].Question, want)
		}
	}

	// A rater counts right answers by the executor, without eval.Verify. Of the same
	// samples, most right must win the vote and none right cannot; at a temperature
	// close to 0 its answers are the greedy ones.
	for i, rate := range rates(t, c, 8, questions) {
		if rate.Right > 4 && m.MV[i].Value != 1 || rate.Right == 0 && m.MV[i].Value != 0 {
			t.Errorf("question %d: %d of %d samples are right and the vote is %g", i, rate.Right, rate.Answers, m.MV[i].Value)
		}
	}
	cold := c
	cold.Rollout.Temperature = 1e-5
	for i, rate := range rates(t, cold, 2, questions) {
		if float64(rate.Right)/2 != m.EX[i].Value {
			t.Errorf("question %d: %d of 2 cold samples are right, the greedy answer has %g", i, rate.Right, m.EX[i].Value)
		}
	}

	again, err := Measure(t.Context(), c, questions, 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("measured twice:\n%s", diff)
	}
	c.Rollout.MaxPrompt = 1
	if _, err := Measure(t.Context(), c, questions, 8, Options{}); err == nil {
		t.Error("questions whose prompts are all too long were measured")
	}
}

// rates are how many of the samples of a policy are right.
func rates(t *testing.T, c Config, samples int, questions []data.Question) (all []curriculum.Rate) {
	t.Helper()
	r, err := OpenRater(t.Context(), c, samples, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for rate, err := range r.Rates(t.Context(), questions, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rate)
	}
	return all
}
