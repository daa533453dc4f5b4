package report

import (
	"fmt"

	"caper/train/ablation"
)

// variants draws a chart of each comparison.
func variants(all []ablation.Comparison) []forest {
	var charts []forest
	for _, c := range all {
		f := forest{Title: c.Test, Measure: "mean of seeds", Count: Thousands(c.Items)}
		if c.Seeds == 1 {
			f.Measure = "one seed"
		}
		for i, r := range c.Rows {
			row := forestRow{
				Name: r.Variant, Note: r.Note, Own: i == 0,
				Marks: []mark{{"model", percent(r.Mean), percent(r.Interval[0]), percent(r.Interval[1])}},
			}
			if row.Figure = digits(r.Mean); i > 0 {
				row.Figure = fmt.Sprintf("%s, %s points (%s), %s", row.Figure, points(r.Difference), span(r.Apart), r.Verdict())
			}
			if r.Start != nil {
				row.Figure += fmt.Sprintf("; %s over %s (%s)", points(r.Start.Difference), c.Untrained(), span(r.Start.Interval))
			}
			f.Rows = append(f.Rows, row)
		}
		charts = append(charts, f)
	}
	return charts
}

// StudyPage makes the page of a study.
func StudyPage(name string, m ablation.Matrix, all []ablation.Comparison) Page {
	return Page{
		Title:       "Ablation study " + name,
		Summary:     fmt.Sprintf("%d variants of one training, with %d seeds each, compared with “%s”.", len(m.Variants), len(m.Seeds), m.Variants[0].Name),
		Machine:     ThisMachine(),
		Comparisons: all,
	}
}
