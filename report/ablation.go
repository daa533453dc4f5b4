package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"caper/eval"
	"caper/train/prm"
)

// study is what the ablations show: in words, and as charts that put the runs
// beside each other, one a test and weighing.
type study struct {
	Lengths  string // how long the runs are, if not all alike
	Findings []finding
	Charts   []forest
}

// finding says what leaving one part of the method out did: against which run, and
// a line for each effect that it had on some test.
type finding struct {
	Run, Note, Against string
	Effects            []string
}

// effect is what an ablation did on one test.
type effect string

const (
	helped       effect = "helped"
	hurt         effect = "hurt"
	undetermined effect = "no significant difference"
)

// difference is what a figure gains without a part of the method. Its interval
// combines those of the two figures (Zou and Donner 2008) as if they were
// independent. Both were measured on the same queries, which makes it too wide, if
// anything: it errs on the side of no difference.
type difference struct {
	top1     float64
	interval eval.Interval
}

func differenceOf(without, with eval.Measure) difference {
	d := without.Top1 - with.Top1
	return difference{d, eval.Interval{
		d - math.Hypot(without.Top1-without.Top1Interval[0], with.Top1Interval[1]-with.Top1),
		d + math.Hypot(without.Top1Interval[1]-without.Top1, with.Top1-with.Top1Interval[0]),
	}}
}

func (d difference) effect() effect {
	switch {
	case d.interval[0] > 0:
		return helped
	case d.interval[1] < 0:
		return hurt
	}
	return undetermined
}

func (d difference) String() string { return points(d.top1) + " points, " + span(d.interval) }

// studied returns nil if no test was taken by more than one run.
func studied(p Page) *study {
	s := &study{Charts: ablationCharts(p), Lengths: lengths(p.Runs)}
	if len(s.Charts) == 0 {
		return nil
	}
	for _, run := range partial(p.Runs) {
		s.Findings = append(s.Findings, findingOf(p, run))
	}
	return s
}

// partial returns the runs with a part of the method left out: those that set
// something otherwise than the first, and not only their length.
func partial(runs []Run) []Run {
	var list []Run
	for _, run := range runs {
		if !sameMethod(runs[0].Config, run.Config) {
			list = append(list, run)
		}
	}
	return list
}

func sameMethod(a, b prm.Config) bool {
	a.Train.MaxSteps, a.Train.Epochs, a.Train.Out = b.Train.MaxSteps, b.Train.Epochs, b.Train.Out
	return a.Text() == b.Text()
}

// peer returns the run that an ablation is to be compared with: the whole method
// in as many steps. A shorter training is worse for that alone.
func peer(runs []Run, ablation Run) (Run, bool) {
	i := slices.IndexFunc(runs, func(r Run) bool {
		return sameMethod(runs[0].Config, r.Config) && lastStep(r.Metrics) == lastStep(ablation.Metrics)
	})
	if i < 0 {
		return Run{}, false
	}
	return runs[i], true
}

// lengths is empty if all ablations are as long as the first run.
func lengths(runs []Run) string {
	var others, peers []string
	for _, run := range partial(runs) {
		if lastStep(run.Metrics) == lastStep(runs[0].Metrics) {
			continue
		}
		others = append(others, fmt.Sprintf("%s for %s", quoted(run.Name), Thousands(lastStep(run.Metrics))))
		if with, ok := peer(runs, run); ok && !slices.Contains(peers, quoted(with.Name)) {
			peers = append(peers, quoted(with.Name))
		}
	}
	if len(others) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s trained for %s optimiser steps, %s. Length alone changes a result",
		quoted(runs[0].Name), Thousands(lastStep(runs[0].Metrics)), enumerated(others))
	if len(peers) == 0 {
		return text + ", and there is no run of the whole method in as many steps to compare with."
	}
	return text + ": these are to be compared with " + enumerated(peers) + " alone, the whole method in as many steps."
}

// findingOf groups the tests by what the ablation did on them.
func findingOf(p Page, run Run) finding {
	f := finding{Run: run.Name, Note: run.Note}
	with, ok := peer(p.Runs, run)
	if !ok {
		f.Against = fmt.Sprintf("No run of the whole method has %s steps, so what this part is worth cannot be told.", Thousands(lastStep(run.Metrics)))
		return f
	}
	where := map[effect][]string{}
	for _, t := range p.Tests {
		if t.Run != with.Name {
			continue
		}
		found := map[effect][]string{}
		for _, w := range t.weighings() {
			if own := p.result(t.Name, run.Name, w.name); own != nil {
				d := differenceOf(own.Measure, w.result.Measure)
				found[d.effect()] = append(found[d.effect()], w.name+": "+d.String())
			}
		}
		for e, differences := range found {
			where[e] = append(where[e], fmt.Sprintf("%s (%s)", quoted(t.Name), strings.Join(differences, "; ")))
		}
	}
	for _, e := range []effect{helped, hurt, undetermined} {
		if len(where[e]) > 0 {
			f.Effects = append(f.Effects, string(e)+" on "+enumerated(where[e]))
		}
	}
	f.Against = "Leaving this out, against " + quoted(with.Name) + ":"
	if len(f.Effects) == 0 {
		f.Against = "It took no test that " + quoted(with.Name) + " took."
	}
	return f
}

// result returns what a run reached on a test, nil if it did not take it.
func (p Page) result(test, run, weighing string) *eval.Localization {
	for _, t := range p.Tests {
		for _, w := range t.weighings() {
			if t.Name == test && t.Run == run && w.name == weighing {
				return w.result
			}
		}
	}
	return nil
}

// ablationCharts puts the runs beside each other on every test that more than one
// of them took, with the best rule for comparison.
func ablationCharts(p Page) []forest {
	var charts []forest
	for _, first := range p.Tests {
		if first.Run != p.mainRun() {
			continue
		}
		for _, w := range first.weighings() {
			f := forest{Title: first.Name + ", " + w.name, Count: Thousands(w.result.Count)}
			for _, t := range p.Tests {
				if l := p.result(first.Name, t.Run, w.name); l != nil && t.Name == first.Name {
					f.Rows = append(f.Rows, ablationRow(p, t, w.name, l))
				}
			}
			if len(f.Rows) < 2 {
				continue
			}
			if rival, ok := w.result.Baselines[w.result.Best]; ok {
				f.Rows = append(f.Rows, forestRow{
					Name: w.result.Best, Note: "best rule", Marks: []mark{markOf("rule", rival.Measure)}, Figure: withSpan(rival.Measure),
				})
			}
			charts = append(charts, f)
		}
	}
	return charts
}

// ablationRow notes a run's length and, if a part is left out, what that did. The
// runs that ablations are compared with are bold; runs of another length are there
// for orientation only, and look like it.
func ablationRow(p Page, t Test, weighing string, l *eval.Localization) forestRow {
	row := forestRow{Name: t.Run, Marks: []mark{markOf("model", l.Measure)}, Figure: withSpan(l.Measure)}
	i := slices.IndexFunc(p.Runs, func(r Run) bool { return r.Name == t.Run })
	if i < 0 {
		return row
	}
	run := p.Runs[i]
	var notes []string
	if steps := lastStep(run.Metrics); steps > 0 {
		notes = append(notes, Thousands(steps)+" steps")
	}
	if sameMethod(p.Runs[0].Config, run.Config) {
		if row.Own = isPeer(p.Runs, run); !row.Own {
			row.Marks[0].Class = "rule"
		}
	} else if with, ok := peer(p.Runs, run); ok {
		if other := p.result(t.Name, with.Name, weighing); other != nil {
			notes = append(notes, string(differenceOf(l.Measure, other.Measure).effect()))
		}
	}
	row.Note = strings.Join(notes, ", ")
	return row
}

func isPeer(runs []Run, run Run) bool {
	return slices.ContainsFunc(partial(runs), func(ablation Run) bool {
		with, ok := peer(runs, ablation)
		return ok && with.Name == run.Name
	})
}

// points writes a difference of shares in percentage points.
func points(difference float64) string { return fmt.Sprintf("%+.1f", 100*difference) }

func quoted(name string) string { return "“" + name + "”" }

// enumerated joins the items of a sentence.
func enumerated(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
