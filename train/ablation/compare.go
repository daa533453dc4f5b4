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
// difference from the first variant's, which is 0 for the first. Start is the difference
// from the policy that was not trained, if there is one beside the first variant and this
// is not it.
type Row struct {
	Variant    string        `json:"variant"`
	Note       string        `json:"note,omitempty"`
	Mean       float64       `json:"mean"`
	Interval   eval.Interval `json:"interval"`
	Difference float64       `json:"difference"`
	Apart      eval.Interval `json:"difference_interval"`
	Untrained  bool          `json:"untrained,omitempty"`
	Start      *Gain         `json:"against_start,omitempty"`
}

// Gain is what training made of a policy.
type Gain struct {
	Difference float64       `json:"difference"`
	Interval   eval.Interval `json:"difference_interval"`
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

// Untrained is the name of the variant that rows tell their gain over, empty where they
// tell none.
func (c Comparison) Untrained() string {
	for i, r := range c.Rows {
		if r.Untrained && i > 0 {
			return r.Variant
		}
	}
	return ""
}

// resamples of each comparison.
const resamples = 2000

// compare compares every variant with the first, and with the untrained one, on every test. results[v][s] are the
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
			row := Row{
				Variant: v.Name, Note: v.Note, Mean: compared.Variant, Interval: compared.VariantInterval,
				Difference: compared.Difference, Apart: compared.Interval, Untrained: v.Untrained,
			}
			if start := s.Matrix.start(); start > 0 && !v.Untrained {
				gained, err := eval.CompareSeeds(bySeed(results[s.Matrix.Variants[start].Name], t), bySeed(results[v.Name], t), resamples, 1)
				if err != nil {
					return nil, fmt.Errorf("%s, variant %q: %w", test.Name, v.Name, err)
				}
				row.Start = &Gain{gained.Difference, gained.Interval}
			}
			c.Rows = append(c.Rows, row)
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
		start := c.Untrained()
		head, rule := fmt.Sprintf("| variant | mean (95 %%) | against %s (95 %%) | |", c.Rows[0].Variant), "|---|---|---|---|"
		if start != "" {
			head, rule = head+fmt.Sprintf(" against %s (95 %%) |", start), rule+"---|"
		}
		fmt.Fprintf(w, "%s\n%s\n", head, rule)
		for k, r := range c.Rows {
			against, verdict := "", ""
			if k > 0 {
				against, verdict = apart(r.Difference, r.Apart, " (", ")"), r.Verdict()
			}
			line := fmt.Sprintf("| %s | %.1f (%.1f-%.1f) | %s | %s |", r.Variant, 100*r.Mean, 100*r.Interval[0], 100*r.Interval[1], against, verdict)
			if start != "" {
				line += " " + r.gained(" (", ")") + " |"
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// apart writes a difference with its interval between two marks.
func apart(difference float64, i eval.Interval, before, after string) string {
	return fmt.Sprintf("%+.1f%s%+.1f to %+.1f%s", 100*difference, before, 100*i[0], 100*i[1], after)
}

// gained writes the gain over the untrained policy, if there is one.
func (r Row) gained(before, after string) string {
	if r.Start == nil {
		return ""
	}
	return apart(r.Start.Difference, r.Start.Interval, before, after)
}

// WriteText writes comparisons for a terminal.
func WriteText(out io.Writer, all []Comparison) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range all {
		start := c.Untrained()
		fmt.Fprintf(w, "%s of %d items, %s\t\t95 %%\tagainst %s\t95 %%", c.Test, c.Items, seedCount(c.Seeds), c.Rows[0].Variant)
		if start != "" {
			fmt.Fprintf(w, "\t\tagainst %s\t95 %%", start)
		}
		fmt.Fprintln(w)
		for k, r := range c.Rows {
			fmt.Fprintf(w, "%s\t%.1f\t%.1f-%.1f\t", r.Variant, 100*r.Mean, 100*r.Interval[0], 100*r.Interval[1])
			if k > 0 {
				fmt.Fprintf(w, "%s\t%s", apart(r.Difference, r.Apart, "\t", ""), r.Verdict())
			} else if start != "" {
				fmt.Fprint(w, "\t\t")
			}
			if start != "" {
				fmt.Fprintf(w, "\t%s", r.gained("\t", ""))
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
