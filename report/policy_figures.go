package report

import (
	"fmt"
	"math"
	"slices"

	"caper/eval"
	"caper/report/series"
)

// policyTable lists final figures, a column each run.
func policyTable(all []Policy) grid {
	var g grid
	for _, p := range all {
		g.Columns = append(g.Columns, p.Name)
	}
	for _, row := range []struct {
		name string
		cell func([]series.Line) string
	}{
		{"best validation EX, % (at step)", bestEX},
		{"... 95 % interval, by the number of questions", bestEXInterval},
		{"samples right in the last tenth, %", func(l []series.Line) string { return lastTenth(l, "ex", 100) }},
		{"entropy in the last tenth, nats", func(l []series.Line) string { return lastTenth(l, "entropy", 1) }},
		{"optimiser steps", func(l []series.Line) string { return Thousands(last(l)) }},
		{"samples", func(l []series.Line) string { return total(l, "samples") }},
		{"groups without a signal", func(l []series.Line) string { return total(l, "groups_without_signal") }},
		{"groups without any reward", func(l []series.Line) string { return total(l, "groups_without_reward") }},
		{"samples lost", func(l []series.Line) string { return totalOfParts(l, "lost") }},
		{"steps skipped, not finite", func(l []series.Line) string { return total(l, "skipped") }},
		{"tokens a second, median", func(l []series.Line) string { return median(l, "tokens_per_second") }},
		{"sampled tokens a second, median", func(l []series.Line) string { return median(l, "sampled_tokens_per_second") }},
	} {
		r := gridRow{Name: row.name}
		filled := false
		for _, p := range all {
			cell := row.cell(p.Lines)
			filled = filled || cell != ""
			r.Cells = append(r.Cells, cell)
		}
		if filled {
			g.Rows = append(g.Rows, r)
		}
	}
	return g
}

// best is the line of the best validation; of equals the first.
func best(lines []series.Line) (line series.Line, ex float64, ok bool) {
	ex = -1
	for _, l := range lines {
		if v, validated := l.Value("validation_ex"); validated && v > ex {
			line, ex, ok = l, v, true
		}
	}
	return line, ex, ok
}

func bestEX(lines []series.Line) string {
	l, ex, ok := best(lines)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s (%s)", digits(ex), Thousands(l.Step))
}

func bestEXInterval(lines []series.Line) string {
	l, ex, ok := best(lines)
	n, counted := l.Value("validated")
	if !ok || !counted || n < 1 {
		return ""
	}
	return span(wilson(ex, n))
}

// wilson is the 95 % interval of a share of n (Wilson 1927): unlike the one from the
// share's standard error it holds for shares near 0 and 1.
func wilson(share, n float64) eval.Interval {
	const z = 1.959964
	centre := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return eval.Interval{centre - half, centre + half}
}

// values are those of a field, in the order of the steps.
func values(lines []series.Line, field string) []float64 {
	var all []float64
	for _, l := range lines {
		if v, ok := l.Value(field); ok {
			all = append(all, v)
		}
	}
	return all
}

func lastTenth(lines []series.Line, field string, scale float64) string {
	all := values(lines, field)
	if len(all) == 0 {
		return ""
	}
	end := all[len(all)-max(1, len(all)/10):]
	sum := 0.0
	for _, v := range end {
		sum += v
	}
	return fmt.Sprintf("%.3g", scale*sum/float64(len(end)))
}

func last(lines []series.Line) int {
	if len(lines) == 0 {
		return 0
	}
	return lines[len(lines)-1].Step
}

func total(lines []series.Line, field string) string {
	all := values(lines, field)
	if len(all) == 0 {
		return ""
	}
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return Thousands(int(sum))
}

func totalOfParts(lines []series.Line, field string) string {
	sum := 0.0
	for _, l := range lines {
		for _, n := range l.Parts(field) {
			sum += n
		}
	}
	if sum == 0 {
		return ""
	}
	return Thousands(int(sum))
}

func median(lines []series.Line, field string) string {
	all := values(lines, field)
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return Thousands(int(all[len(all)/2]))
}

// judgedPolicies charts execution accuracy by verdict files, and how far runs are from the
// first that has one.
func judgedPolicies(all []Policy) []forest {
	f := forest{Title: "Test", Measure: "execution accuracy"}
	var first *eval.Verdicts
	for _, p := range all {
		if p.Verdicts == nil {
			continue
		}
		own := first == nil
		if own {
			first = p.Verdicts
		}
		c, err := eval.CompareVerdicts(first, p.Verdicts, 10000, 0)
		row := forestRow{Name: p.Name, Own: own}
		switch {
		case err != nil:
			row.Figure = err.Error()
		default:
			interval := wilson(c.AccuracyB, float64(max(1, c.Questions)))
			row.Marks = []mark{{"model", percent(c.AccuracyB), percent(interval[0]), percent(interval[1])}}
			if row.Figure = fmt.Sprintf("%s (%s)", digits(c.AccuracyB), span(interval)); !own {
				row.Figure = fmt.Sprintf("%s, %s points (%s), p %.2g", digits(c.AccuracyB), points(c.Difference), span(c.Interval), c.P)
			}
			row.Note = fmt.Sprintf("n = %s", Thousands(c.Questions))
		}
		f.Rows = append(f.Rows, row)
	}
	if len(f.Rows) == 0 {
		return nil
	}
	return []forest{f}
}
