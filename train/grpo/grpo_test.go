package grpo

import (
	"testing"

	"caper/train/run"
)

func train(t testing.TB, c Config) (Outcome, []Metrics) {
	t.Helper()
	out, err := Train(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := run.ReadMetrics[Metrics](c.Train.Out)
	if err != nil {
		t.Fatal(err)
	}
	return out, lines
}

// A policy gets better at what it is rewarded for.
func TestRunsGetBetter(t *testing.T) {
	c := smallConfig(t, "train.max_steps=40", "train.batch_questions=6", "train.lr=2e-3", "policy.kl=0", "train.validation_split=dev", "train.validate_every=20")
	out, lines := train(t, c)
	t.Logf("%+v", out)
	for i, m := range lines {
		if m.EX != nil {
			t.Logf("%d: ex %.3f reward %.3f groups %d no signal %d, %v entropy", i, *m.EX, *m.Reward, m.Groups, m.NoSignal, m.Outcomes)
		} else {
			t.Logf("%d: %+v", i, *m.ValidationEX)
		}
	}
}
