package report

import (
	"cmp"
	"fmt"
	"slices"

	"caper/annotate"
	"caper/sql"
	"caper/sqlexec"
)

// yields is the table of annotations, a column each.
func yields(annotations []Annotation) grid {
	var g grid
	rows := []struct {
		name string
		cell func(annotate.Summary) string
	}{
		{"rollouts", func(s annotate.Summary) string { return Thousands(s.Rollouts) }},
		{"correct", func(s annotate.Summary) string { return Thousands(s.Correct) }},
		{"... that gave mutants", func(s annotate.Summary) string { return outOf(s.Injected, s.Correct) }},
		{"mutants accepted", func(s annotate.Summary) string { return outOf(s.MutantsAccepted, s.MutantsTried) }},
		{"failing", func(s annotate.Summary) string { return Thousands(s.Failing) }},
		{"... that were repaired", func(s annotate.Summary) string { return outOf(s.Repaired, s.Failing) }},
		{"queries executed", func(s annotate.Summary) string { return Thousands(s.Executions) }},
		{"tuples", func(s annotate.Summary) string { return Thousands(s.Tuples) }},
		{"... of enclosing clauses", func(s annotate.Summary) string { return Thousands(s.EnclosingTuples) }},
	}
	for _, a := range annotations {
		g.Columns = append(g.Columns, a.Name)
	}
	for _, row := range rows {
		r := gridRow{Name: row.name}
		for _, a := range annotations {
			r.Cells = append(r.Cells, row.cell(a.Summary))
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

// outOf writes a count with its share of a whole.
func outOf(part, whole int) string {
	if whole == 0 {
		return Thousands(part)
	}
	return fmt.Sprintf("%s (%.0f %%)", Thousands(part), 100*float64(part)/float64(whole))
}

// counted is one annotation, counted out.
type counted struct {
	Name    string
	Lists   []bars
	Margins []histogram
}

func countedAnnotations(annotations []Annotation) []counted {
	var all []counted
	for _, a := range annotations {
		s := a.Summary
		c := counted{Name: a.Name, Margins: histograms(s.Margins)}
		for _, list := range []bars{
			countBars("Tuples by clause", s.ByClause, func(a, b string) int {
				return cmp.Compare(sql.ClauseKind(a).Rank(), sql.ClauseKind(b).Rank())
			}),
			countBars("Rollouts without tuples, by reason", s.Reasons, nil),
			countBars("Mutants rejected, by reason", s.RejectedMutants, nil),
			countBars("Tuples by operator", s.ByOperator, nil), // the longest, a column of its own
		} {
			if len(list.Rows) > 0 {
				c.Lists = append(c.Lists, list)
			}
		}
		all = append(all, c)
	}
	return all
}

// countBars lists counts in the given order, or the largest first.
func countBars[K ~string](title string, counts map[K]int, order func(a, b string) int) bars {
	b := bars{Title: title}
	var keys []K
	for key, n := range counts {
		if n > 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y K) int {
		if order != nil {
			if c := order(string(x), string(y)); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
	var values []float64
	for _, key := range keys {
		b.Rows = append(b.Rows, bar{Name: string(key), Note: meanings[string(key)], Label: Thousands(counts[key])})
		values = append(values, float64(counts[key]))
	}
	return b.scaled(values)
}

// meanings explains names that do not explain themselves.
var meanings = map[string]string{
	string(annotate.Duplicate):    "same query, same question",
	string(annotate.NoQuery):      "no text",
	string(annotate.NoParse):      "not one SELECT statement",
	string(annotate.RunOn):        "correct once cut after the first statement",
	string(annotate.NoDivergence): "same form as gold, other result",
	string(annotate.Unrepaired):   "no repair was correct",
	string(annotate.NoMutant):     "no mutant was accepted",
	string(annotate.SameResult):   "same result as the original",
	string(annotate.StillCorrect): "other result, still correct",
	string(annotate.NoPair):       "both clauses read the same",
	string(sqlexec.NoSuchName):    "unknown table or column",
	string(sqlexec.Runtime):       "failed while running",
	"single":                      "only this clause had to be repaired",
	"first":                       "first of the clauses that differ",
	"cascade":                     "this and later clauses repaired",
}

// histogram shows counts side by side: the margins of clauses with as many clauses around
// them, groups by their right samples.
type histogram struct {
	Title string
	Bins  []bin
	Ends  []string // places along the axis
}

type bin struct {
	Share float64 // of the fullest bin, in percent
	Label string  // the count; empty for none
	Range string
}

func histograms(margins map[int][annotate.MarginBins]int) []histogram {
	var depths []int
	for depth := range margins {
		depths = append(depths, depth)
	}
	slices.Sort(depths)
	var all []histogram
	for _, depth := range depths {
		counts := margins[depth]
		fullest, total := max(slices.Max(counts[:]), 1), 0
		h := histogram{Ends: []string{"0", "0.5 α", "α"}}
		for i, n := range counts {
			b := bin{Share: 100 * float64(n) / float64(fullest), Range: fmt.Sprintf("%.1f to %.1f", float64(i)/annotate.MarginBins, float64(i+1)/annotate.MarginBins)}
			if n > 0 {
				b.Label = Thousands(n)
			}
			h.Bins, total = append(h.Bins, b), total+n
		}
		h.Title = fmt.Sprintf("depth %d: %s tuples", depth, Thousands(total))
		if depth == 0 {
			h.Title = fmt.Sprintf("outermost clauses: %s tuples", Thousands(total))
		}
		all = append(all, h)
	}
	return all
}
