package report

import (
	"strings"
	"testing"

	"caper/eval"
)

func TestHeadlineSaysWhoLeads(t *testing.T) {
	for _, test := range []struct {
		lead     float64
		interval eval.Interval
		want     string
	}{
		{0.2, eval.Interval{0.1, 0.3}, "the model leads by 20.0 points (10.0 to 30.0)"},
		{-0.2, eval.Interval{-0.3, -0.1}, "the model trails by 20.0 points (10.0 to 30.0)"},
	} {
		var l eval.Localization
		l.Best = eval.Logistic
		lead := eval.Measure{Top1: test.lead, Top1Interval: test.interval}
		l.Baselines = map[string]eval.BaselineMeasure{eval.Logistic: {Lead: lead}}
		doc := parse(t, rendered(t, Page{Tests: []Test{{Name: "test", Run: "run", Natural: &l}}}))
		if !strings.Contains(doc.text, test.want) {
			t.Errorf("the page does not say %q", test.want)
		}
	}
}

// The runs of one test stand beside each other; a test that one run took alone is
// no ablation.
func TestAblations(t *testing.T) {
	l := drawnLocalization(1, 2, false)
	p := Page{
		Runs: []Run{{Name: "default"}, {Name: "other"}},
		Tests: []Test{
			{Name: "both", Run: "default", Natural: &l, Balanced: &l},
			{Name: "alone", Run: "default", Natural: &l},
			{Name: "both", Run: "other", Natural: &l},
		},
	}
	charts := ablations(p)
	if len(charts) != 1 || charts[0].Title != "both, natural" {
		t.Fatalf("charts %+v", charts)
	}
	var names []string
	for _, row := range charts[0].Rows {
		names = append(names, row.Name)
	}
	if got, want := strings.Join(names, " "), "default other "+l.Best; got != want {
		t.Errorf("rows %q, want %q", got, want)
	}
}
