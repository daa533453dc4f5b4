package report

import (
	"slices"
	"testing"

	"caper/eval"
)

// A table for each test, a row for each policy, and the test against the majority where
// there is one.
func TestVerifiedTests(t *testing.T) {
	choice := func(share float64, only, vote int, p float64) eval.Choice {
		return eval.Choice{Accuracy: share, Interval: eval.Interval{share - 0.1, share + 0.1}, OnlyThis: only, OnlyVote: vote, P: p}
	}
	v := eval.Verification{Questions: 1200, First: choice(0.5, 1, 9, 0.02), Majority: choice(0.6, 0, 0, 1),
		PRM: choice(0.55, 4, 6, 0.75), PRMVote: choice(0.65, 7, 1, 0.07), Oracle: choice(0.8, 20, 0, 0)}
	tests := verifiedTests([]Verification{{"dev", "start", v}, {"test", "start", v}, {"dev", "clause", v}})
	if len(tests) != 2 || tests[0].Test != "dev" || tests[1].Test != "test" || len(tests[0].Table.Rows) != 2 || len(tests[1].Table.Rows) != 1 {
		t.Fatalf("tables %+v", tests)
	}
	want := []string{"1,200", "50.0 (40.0 to 60.0); 1 : 9, p 0.02", "60.0 (50.0 to 70.0)", "55.0 (45.0 to 65.0); 4 : 6, p 0.75", "65.0 (55.0 to 75.0); 7 : 1, p 0.07", "80.0 (70.0 to 90.0)"}
	row := tests[0].Table.Rows[1]
	if row.Name != "clause" || !slices.Equal(row.Cells, want) {
		t.Errorf("row %q\nwant %q", row, want)
	}
}
