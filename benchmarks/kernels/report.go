package kernels

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"caper/engine"
)

// Operator is all launches of an operator in one phase of a step.
type Operator struct {
	Name     string  `json:"operator"`
	Phase    string  `json:"phase"`
	Launches int     `json:"launches"`
	Seconds  float64 `json:"seconds"` // of a step
	FLOPs    float64 `json:"flops"`
	Bytes    float64 `json:"bytes"` // the least that has to move
}

// operators is an observer that sums up.
type operators struct {
	list  []Operator
	flops float64
}

func (s *operators) Observe(l *engine.Launch) {
	s.flops += l.FLOPs - l.Again
	s.add(l.Operator, l.Phase, l.Duration, l.FLOPs, l.Bytes())
}

func (s *operators) add(name string, phase engine.Phase, d time.Duration, flops, bytes float64) {
	s.list = merge(s.list, Operator{Name: name, Phase: phase.String(), Launches: 1, Seconds: d.Seconds(), FLOPs: flops, Bytes: bytes})
}

// merge adds o to what the list has of its operator and phase.
func merge(list []Operator, o Operator) []Operator {
	i := slices.IndexFunc(list, func(p Operator) bool { return p.Name == o.Name && p.Phase == o.Phase })
	if i < 0 {
		return append(list, o)
	}
	p := &list[i]
	p.Launches, p.Seconds, p.FLOPs, p.Bytes = p.Launches+o.Launches, p.Seconds+o.Seconds, p.FLOPs+o.FLOPs, p.Bytes+o.Bytes
	return list
}

func (s *operators) reset() { *s = operators{} }

// table returns the operators of a step, the longest first.
func (s *operators) table(steps int) []Operator {
	n := float64(steps)
	for i := range s.list {
		o := &s.list[i]
		o.Launches, o.Seconds, o.FLOPs, o.Bytes = o.Launches/steps, o.Seconds/n, o.FLOPs/n, o.Bytes/n
	}
	slices.SortStableFunc(s.list, func(a, b Operator) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return s.list
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// WriteTable writes the report for people: of each operator the time of a launch, what it
// reaches, and the share of the ceiling that bounds it.
func (r *Report) WriteTable(to io.Writer) error {
	for _, line := range r.head() {
		fmt.Fprintln(to, line)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range r.rows() {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, line := range r.steps() {
		fmt.Fprintln(to, line)
	}
	return nil
}

// WriteMarkdown is WriteTable in Markdown.
func (r *Report) WriteMarkdown(to io.Writer) error {
	for _, line := range append(r.head(), r.steps()...) {
		fmt.Fprintln(to, "- "+line)
	}
	fmt.Fprintln(to)
	for i, row := range r.rows() {
		if _, err := fmt.Fprintln(to, "| "+strings.Join(row, " | ")+" |"); err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintln(to, strings.Repeat("|---", len(row))+"|")
		}
	}
	return nil
}

func (r *Report) head() []string {
	lines := []string{fmt.Sprintf("%s, %s with %d layers, %.2f G weights; samples of %d tokens as %d rows",
		r.Device, r.Model, r.Layers, float64(r.Weights)/1e9, r.Shared.Tokens, r.Shared.Rows)}
	if r.Copy > 0 {
		lines = append(lines, fmt.Sprintf("ceilings: copy %.2f TB/s, bf16 product of 8192 %.0f TFLOP/s", r.Copy/1e12, r.Product/1e12))
	}
	return lines
}

func (r *Report) rows() [][]string {
	rows := [][]string{{"operator", "phase", "launches", "us each", "TFLOP/s", "TB/s", "of ceiling"}}
	for _, o := range r.Operators {
		rows = append(rows, []string{o.Name, o.Phase, fmt.Sprint(o.Launches), fmt.Sprintf("%.1f", 1e6*o.Seconds/float64(max(o.Launches, 1))),
			fmt.Sprintf("%.2f", o.FLOPs/o.Seconds/1e12), fmt.Sprintf("%.3f", o.Bytes/o.Seconds/1e12), r.share(o)})
	}
	return rows
}

func (r *Report) steps() []string {
	line := func(name string, s Step) string {
		return fmt.Sprintf("%s: a step of %d rows for %d tokens takes %.1f ms: %.0f tokens/s, %.2f TFLOP/s (%.1f %% of the 989 of an H200), activations %.2f GB",
			name, s.Rows, s.Tokens, 1e3*s.Seconds, float64(s.Tokens)/s.Seconds, s.FLOPs/s.Seconds/1e12, 100*s.FLOPs/s.Seconds/peakFLOPs, float64(s.Memory)/1e9)
	}
	return []string{line("shared prompt", r.Shared), line("separate prompts", r.Separate)}
}

// share is how much of the nearer ceiling an operator reaches.
func (r *Report) share(o Operator) string {
	if r.Copy == 0 || o.Seconds == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*max(o.FLOPs/r.Product, o.Bytes/r.Copy)/o.Seconds)
}
