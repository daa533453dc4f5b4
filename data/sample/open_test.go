package sample

import (
	"testing"

	"caper/data"
)

// The benchmark opens like any other one in Spider's layout.
func TestOpensAsBenchmark(t *testing.T) {
	b, err := data.OpenBenchmark(bench(t), "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Layout != "spider" {
		t.Errorf("layout %q, want spider", b.Layout)
	}
	for _, name := range Splits {
		questions, err := b.Questions(name)
		if err != nil {
			t.Fatal(err)
		}
		want := split(t, name)
		if len(questions) != len(want) {
			t.Errorf("%s: %d questions, want %d", name, len(questions), len(want))
			continue
		}
		first := questions[0]
		if first.Gold != want[0].question.Query || first.ID != data.IndexID(0) {
			t.Errorf("%s: first question is %+v", name, first)
		}
		if _, err := b.Prompt(first); err != nil {
			t.Error(err)
		}
	}
}
