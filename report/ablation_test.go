package report

import (
	"strings"
	"testing"

	"caper/eval"
	"caper/train/prm"
)

// measured is a result with an interval as wide on both sides.
func measured(top1, half float64) *eval.Localization {
	l := &eval.Localization{}
	l.Count, l.Top1, l.Top1Interval = 100, top1, eval.Interval{top1 - half, top1 + half}
	return l
}

// trained is a run of some steps; a margin other than that of the first makes it
// an ablation.
func trained(name string, steps int, margin string) Run {
	r := Run{Name: name, Config: prm.Defaults(), Metrics: []prm.Metrics{{Step: steps}}}
	r.Config.Train.MaxSteps, r.Config.Train.Out, r.Config.Loss.Margin = steps, name, margin
	return r
}

// A difference counts only if its interval, which is narrower than the two
// intervals laid end to end, leaves 0 out.
func TestEffect(t *testing.T) {
	for _, test := range []struct {
		without, with *eval.Localization
		want          effect
	}{
		{measured(0.60, 0.02), measured(0.50, 0.02), helped},
		{measured(0.50, 0.02), measured(0.60, 0.02), hurt},
		{measured(0.535, 0.02), measured(0.50, 0.02), helped}, // they overlap, but 0.035 > 0.02 sqrt 2
		{measured(0.52, 0.02), measured(0.50, 0.02), undetermined},
		{measured(0.50, 0.02), measured(0.52, 0.02), undetermined},
		{measured(0.50, 0.02), measured(0.50, 0.02), undetermined},
		{measured(0.60, 0.50), measured(0.50, 0.02), undetermined},
	} {
		if got := differenceOf(test.without.Measure, test.with.Measure).effect(); got != test.want {
			t.Errorf("%v without, %v with: %q, want %q", test.without.Top1Interval, test.with.Top1Interval, got, test.want)
		}
	}
}

// The ends of a difference come from those ends of the figures that make it
// smallest and largest.
func TestDifferenceOfSkewedIntervals(t *testing.T) {
	without := eval.Measure{Top1: 0.50, Top1Interval: eval.Interval{0.47, 0.58}}
	with := eval.Measure{Top1: 0.40, Top1Interval: eval.Interval{0.34, 0.44}}
	d := differenceOf(without, with)
	if got, want := d.String(), "+10.0 points, 5.0 to 20.0"; got != want {
		t.Errorf("difference %q, want %q", got, want)
	}
}

// shortStudy is a long run, the same cut short, and a short ablation that helps on
// one test, hurts on the next and changes nothing that counts on the third.
func shortStudy() Page {
	p := Page{Runs: []Run{trained("long", 1366, "weight"), trained("short", 200, "weight"), trained("plain", 200, "none")}}
	for i, test := range []string{"old words", "new words", "no words"} {
		p.Tests = append(p.Tests,
			Test{Name: test, Run: "long", Natural: measured(0.9, 0.01)},
			Test{Name: test, Run: "short", Natural: measured(0.5, 0.01)},
			Test{Name: test, Run: "plain", Natural: measured([]float64{0.6, 0.4, 0.51}[i], 0.01)})
	}
	return p
}

func TestAblationsInWords(t *testing.T) {
	doc := parse(t, rendered(t, shortStudy()))
	for _, want := range []string{
		"“long” trained for 1,366 optimiser steps, “plain” for 200.",
		"these are to be compared with “short” alone, the whole method in as many steps.",
		"Leaving this out, against “short”:",
		"helped on “old words” (natural: +10.0 points, 8.6 to 11.4)",
		"hurt on “new words” (natural: -10.0 points, -11.4 to -8.6)",
		"no significant difference on “no words” (natural: +1.0 points, -0.4 to 2.4)",
		"200 steps, helped", "200 steps, hurt", "200 steps, no significant difference",
	} {
		if !strings.Contains(doc.text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Runs as long as the first are compared with it, and nothing is said of lengths.
func TestAblationsOfOneLength(t *testing.T) {
	p := shortStudy()
	p.Runs[0], p.Runs[1] = trained("long", 200, "weight"), trained("short", 100, "weight")
	s := studied(p)
	if s.Lengths != "" {
		t.Errorf("said of lengths: %q", s.Lengths)
	}
	f := s.Findings[0]
	if want := "Leaving this out, against “long”:"; f.Against != want || len(f.Effects) != 1 || !strings.HasPrefix(f.Effects[0], "hurt on ") {
		t.Errorf("finding %+v, want it to hurt %q", f, want)
	}
}

// A short ablation beside a long run alone decides nothing, whatever the figures.
func TestAblationWithoutPeer(t *testing.T) {
	p := shortStudy()
	p.Runs = []Run{p.Runs[0], p.Runs[2]}
	s := studied(p)
	if f := s.Findings[0]; !strings.Contains(f.Against, "cannot be told") || len(f.Effects) > 0 {
		t.Errorf("finding %+v, want none", f)
	}
	if want := "no run of the whole method in as many steps"; !strings.Contains(s.Lengths, want) {
		t.Errorf("lengths %q, want %q", s.Lengths, want)
	}
	for _, chart := range s.Charts {
		for _, row := range chart.Rows {
			if row.Name == "plain" && row.Note != "200 steps" {
				t.Errorf("a row says %q", row.Note)
			}
		}
	}
}

// The runs of one test stand beside each other; a test that one run took alone is
// no ablation.
func TestAblationCharts(t *testing.T) {
	l := drawnLocalization(1, 2, false)
	p := Page{
		Runs: []Run{{Name: "default"}, {Name: "other"}},
		Tests: []Test{
			{Name: "both", Run: "default", Natural: &l, Balanced: &l},
			{Name: "alone", Run: "default", Natural: &l},
			{Name: "both", Run: "other", Natural: &l},
		},
	}
	charts := ablationCharts(p)
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
