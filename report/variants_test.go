package report

import (
	"strings"
	"testing"

	"caper/eval"
	"caper/train/ablation"
)

// A trained policy's row says both what it is against the first variant and what it gained
// over the start; the start's own says nothing of itself.
func TestVariantsTellTheGainOverTheStart(t *testing.T) {
	gain := &ablation.Gain{Difference: 0.125, Interval: eval.Interval{0.0625, 0.25}}
	charts := variants([]ablation.Comparison{{Test: "EX on dev", Items: 8, Seeds: 2, Rows: []ablation.Row{
		{Variant: "sparse", Mean: 0.5, Start: gain},
		{Variant: "clause", Mean: 0.75, Difference: 0.25, Apart: eval.Interval{0.125, 0.375}, Start: gain},
		{Variant: "start", Mean: 0.375, Difference: -0.125, Untrained: true},
	}}})
	if len(charts) != 1 || len(charts[0].Rows) != 3 {
		t.Fatalf("charts %+v, want one of three rows", charts)
	}
	for i, want := range []string{"50.0; +12.5 over start (6.2 to 25.0)", "75.0, +25.0 points (12.5 to 37.5), better; +12.5 over start (6.2 to 25.0)"} {
		if got := charts[0].Rows[i].Figure; got != want {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
	if got := charts[0].Rows[2].Figure; strings.Contains(got, "over") {
		t.Errorf("the start is compared with itself: %q", got)
	}
}
