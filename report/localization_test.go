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
		{0.2, eval.Interval{-0.1, 0.3}, "no significant difference (the model's lead is +20.0 points, -10.0 to 30.0)"},
		{-0.2, eval.Interval{-0.3, 0}, "no significant difference (the model's lead is -20.0 points, -30.0 to 0.0)"},
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

// The counts are those of all faults; what a balanced figure leaves out is said.
func TestCountsOf(t *testing.T) {
	all, most := measured(0.5, 0.1), measured(0.5, 0.1)
	all.Count, most.Count, all.Questions = 1234, 1230, 600
	for _, test := range []struct {
		ws   []weighed
		want string
	}{
		{[]weighed{{"natural", all}}, "1,234 failed queries of 600 questions"},
		{[]weighed{{"balanced", all}, {"natural", all}}, "1,234 failed queries of 600 questions"},
		{[]weighed{{"balanced", most}, {"natural", all}}, "1,234 failed queries of 600 questions; 4 of them fail in kinds of clauses too rare for a balanced figure"},
	} {
		if got := countsOf(test.ws); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}
