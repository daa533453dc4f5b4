package ablation

import (
	"fmt"
	"io"
	"text/tabwriter"

	"caper/eval"
)

// Comparison is one test of a study: a row for each variant, the first being the one
// that the others are compared with.
type Comparison struct {
	Test  string `json:"test"`
	Items int    `json:"items"`
	Seeds int    `json:"seeds"`
	Rows  []Row  `json:"variants"`
}

// Row is what a variant reached: means over the seeds, shares of 1, and their
// difference from the first variant's, which is 0 for the first.
type Row struct {
	Variant    string        `json:"variant"`
	Note       string        `json:"note,omitempty"`
	Mean       float64       `json:"mean"`
	Interval   eval.Interval `json:"interval"`
	Difference float64       `json:"difference"`
	Apart      eval.Interval `json:"difference_interval"`
}

// Verdict says in a word what the interval of the difference allows to say.
func (r Row) Verdict() string {
	switch {
	case r.Apart[0] > 0:
		return "better"
	case r.Apart[1] < 0:
		return "worse"
	}
	return "no significant difference"
}

// resamples of each comparison.
const resamples = 2000

// compare compares every variant with the first on every test. results[v][s] are the
// tests of variant v's seed number s.
func (s *Study) compare(results map[string][][]Test) ([]Comparison, error) {
	reference := results[s.Matrix.Variants[0].Name]
	var all []Comparison
	for t, test := range reference[0] {
		c := Comparison{Test: test.Name, Items: len(test.Outcomes), Seeds: len(reference)}
		for _, v := range s.Matrix.Variants {
			compared, err := eval.CompareSeeds(bySeed(reference, t), bySeed(results[v.Name], t), resamples, 1)
			if err != nil {
				return nil, fmt.Errorf("%s, variant %q: %w", test.Name, v.Name, err)
			}
			c.Rows = append(c.Rows, Row{
				Variant: v.Name, Note: v.Note, Mean: compared.Variant, Interval: compared.VariantInterval,
				Difference: compared.Difference, Apart: compared.Interval,
			})
		}
		all = append(all, c)
	}
	return all, nil
}

// bySeed picks one test out of each seed's.
func bySeed(runs [][]Test, test int) [][]eval.Outcome {
	var outcomes [][]eval.Outcome
	for _, tests := range runs {
		outcomes = append(outcomes, tests[test].Outcomes)
	}
	return outcomes
}

// WriteMarkdown writes comparisons as tables.
func WriteMarkdown(w io.Writer, all []Comparison) error {
	for i, c := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s, percent: %d items, %s\n\n", c.Test, c.Items, seedCount(c.Seeds))
		fmt.Fprintf(w, "| variant | mean (95 %%) | against %s (95 %%) | |\n|---|---|---|---|\n", c.Rows[0].Variant)
		for k, r := range c.Rows {
			against, verdict := "", ""
			if k > 0 {
				against, verdict = fmt.Sprintf("%+.1f (%+.1f to %+.1f)", 100*r.Difference, 100*r.Apart[0], 100*r.Apart[1]), r.Verdict()
			}
			if _, err := fmt.Fprintf(w, "| %s | %.1f (%.1f-%.1f) | %s | %s |\n", r.Variant, 100*r.Mean, 100*r.Interval[0], 100*r.Interval[1], against, verdict); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteText writes comparisons for a terminal.
func WriteText(out io.Writer, all []Comparison) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range all {
		fmt.Fprintf(w, "%s of %d items, %s\t\t95 %%\tagainst %s\t95 %%\n", c.Test, c.Items, seedCount(c.Seeds), c.Rows[0].Variant)
		for k, r := range c.Rows {
			fmt.Fprintf(w, "%s\t%.1f\t%.1f-%.1f\t", r.Variant, 100*r.Mean, 100*r.Interval[0], 100*r.Interval[1])
			if k > 0 {
				fmt.Fprintf(w, "%+.1f\t%+.1f to %+.1f\t%s", 100*r.Difference, 100*r.Apart[0], 100*r.Apart[1], r.Verdict())
			}
			fmt.Fprintln(w)
		}
	}
	return w.Flush()
}

func seedCount(n int) string {
	if n == 1 {
		return "one seed"
	}
	return fmt.Sprintf("%d seeds", n)
}
