package report

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
)

// view is a Page as the template needs it: text, and positions in percent.
type view struct {
	Page
	CSS       template.CSS
	When      string
	Headlines []headline
	Located   []located
	Ablations *study
	Variants  []forest
	Verified  []verified
	Curves    []curve
	Legend    []legendEntry
	Training  grid
	Trained   *policyView
	Configs   []configuration
	Yields    grid
	Counted   []counted
	Shown     []shown
	Scale     []scaleStep
	Durations bars
}

func newView(p Page) view {
	v := view{
		Page:      p,
		CSS:       template.CSS(pageCSS),
		Located:   locatedTests(p),
		Ablations: studied(p),
		Variants:  variants(p.Comparisons),
		Verified:  verifiedTests(p.Verifications),
		Curves:    curves(p.Runs),
		Legend:    legend(p.Runs),
		Training:  trainings(p.Runs),
		Trained:   trainedPolicies(p.Policies),
		Configs:   configurations(p),
		Yields:    yields(p.Annotations),
		Counted:   countedAnnotations(p.Annotations),
		Shown:     shownExamples(p.Examples),
		Scale:     scaleSteps,
		Durations: durations(p.Timings),
	}
	if !p.Date.IsZero() {
		v.When = p.Date.Format("2 January 2006, 15:04 MST")
	}
	for _, l := range v.Located {
		v.Headlines = append(v.Headlines, l.Headline)
	}
	return v
}

// grid is a table whose first column names the rows.
type grid struct {
	Columns []string
	Rows    []gridRow
}

type gridRow struct {
	Name  string
	Cells []string
}

// bars is a list of named lengths.
type bars struct {
	Title string
	Rows  []bar
}

type bar struct {
	Name, Note string
	Share      float64 // of the longest bar, in percent
	Label      string
}

// scaled sets each bar's length from the values, one a row.
func (b bars) scaled(values []float64) bars {
	longest := 0.0
	for _, v := range values {
		longest = max(longest, v)
	}
	for i, v := range values {
		if longest > 0 {
			b.Rows[i].Share = 100 * v / longest
		}
	}
	return b
}

func durations(timings []Timing) bars {
	b := bars{Title: "Time of each part"}
	var values []float64
	for _, t := range timings {
		b.Rows = append(b.Rows, bar{Name: t.Name, Label: duration(t.Duration)})
		values = append(values, t.Duration.Seconds())
	}
	return b.scaled(values)
}

// duration writes a time with as much precision as a reader can use.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// Thousands writes a count with its digits in groups of three.
func Thousands(n int) string {
	if n < 0 {
		return "-" + Thousands(-n)
	}
	digits := strconv.Itoa(n)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}
