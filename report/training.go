package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"caper/train/prm"
)

// trainings is the table of runs, a column each.
func trainings(runs []Run) grid {
	var g grid
	rows := []struct {
		name string
		cell func(Run) string
	}{
		{"best validation Top-1, % (at step)", bestValidation},
		{"optimiser steps", func(r Run) string { return Thousands(lastStep(r.Metrics)) }},
		{"pairs trained on", func(r Run) string { return ofOutcome(r, func(o *prm.Outcome) string { return Thousands(o.Pairs) }) }},
		{"questions trained on", func(r Run) string {
			return ofOutcome(r, func(o *prm.Outcome) string { return Thousands(o.Questions) })
		}},
		{"pairs left out, too long", func(r Run) string { return ofOutcome(r, func(o *prm.Outcome) string { return Thousands(o.TooLong) }) }},
		{"steps skipped, not finite", func(r Run) string { return Thousands(skippedSteps(r.Metrics)) }},
		{"tokens a second", tokensPerSecond},
		{"tokens, separate to packed", unsharedTokens},
		{"training time", func(r Run) string { return ofOutcome(r, func(o *prm.Outcome) string { return duration(o.Elapsed) }) }},
		{"ended early", func(r Run) string { return ofOutcome(r, func(o *prm.Outcome) string { return o.Stopped }) }},
	}
	for _, run := range runs {
		g.Columns = append(g.Columns, run.Name)
	}
	for _, row := range rows {
		cells, filled := make([]string, len(runs)), false
		for i, run := range runs {
			cells[i] = row.cell(run)
			filled = filled || cells[i] != ""
		}
		if filled {
			g.Rows = append(g.Rows, gridRow{row.name, cells})
		}
	}
	return g
}

// ofOutcome is a cell that only a finished run has.
func ofOutcome(r Run, cell func(*prm.Outcome) string) string {
	if r.Outcome == nil {
		return ""
	}
	return cell(r.Outcome)
}

func lastStep(lines []prm.Metrics) int {
	last := 0
	for _, m := range lines {
		last = max(last, m.Step)
	}
	return last
}

func skippedSteps(lines []prm.Metrics) int {
	n := 0
	for _, m := range lines {
		if m.Skipped {
			n++
		}
	}
	return n
}

func bestValidation(r Run) string {
	cell := ""
	for _, m := range r.Metrics {
		if m.Best && m.Top1 != nil {
			cell = fmt.Sprintf("%s (%s)", digits(*m.Top1), Thousands(m.Step))
		}
	}
	return cell
}

// tokensPerSecond is the median over the steps.
func tokensPerSecond(r Run) string {
	var rates []float64
	for _, m := range r.Metrics {
		if m.TokensPerSecond > 0 {
			rates = append(rates, m.TokensPerSecond)
		}
	}
	if len(rates) == 0 {
		return ""
	}
	slices.Sort(rates)
	return Thousands(int(rates[len(rates)/2]))
}

// unsharedTokens compares what separate sequences would hold with what was computed.
func unsharedTokens(r Run) string {
	packed, unpacked := 0, 0
	for _, m := range r.Metrics {
		packed, unpacked = packed+m.Tokens, unpacked+m.Unpacked
	}
	if packed == 0 || unpacked == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f : 1", float64(unpacked)/float64(packed))
}

// configuration is a run's configuration: the whole of it for the first run, what
// differs from that for the others.
type configuration struct {
	Run, Text   string
	Differences []string
}

func configurations(p Page) []configuration {
	var all []configuration
	add := func(first, name, text string) {
		c := configuration{Run: name}
		if first == "" {
			c.Text = text
		} else {
			c.Differences = differences(first, text)
		}
		all = append(all, c)
	}
	first := ""
	for _, run := range p.Runs {
		text := run.Config.Text()
		add(first, run.Name, text)
		first = cmp.Or(first, text)
	}
	first = ""
	for _, policy := range p.Policies {
		add(first, policy.Name, policy.Config)
		first = cmp.Or(first, policy.Config)
	}
	return all
}

// differences lists the keys that b sets otherwise than a, except for the run
// folder, which always differs.
func differences(a, b string) []string {
	before, after := settings(a), settings(b)
	var list []string
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if before[key] != after[key] && key != "train.out" {
			list = append(list, fmt.Sprintf("%s = %s, not %s", key, after[key], before[key]))
		}
	}
	return list
}

// settings returns every key of a configuration, as section.key, with its value; none of
// a text that is no configuration.
func settings(text string) map[string]string {
	var sections map[string]map[string]any
	if err := toml.Unmarshal([]byte(text), &sections); err != nil {
		return nil
	}
	flat := map[string]string{}
	for section, keys := range sections {
		for key, value := range keys {
			flat[section+"."+key] = setting(value)
		}
	}
	return flat
}

func setting(value any) string {
	switch v := value.(type) {
	case string:
		return strconv.Quote(v)
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = setting(v[i])
		}
		return strings.Join(items, ", ")
	}
	return fmt.Sprint(value)
}
