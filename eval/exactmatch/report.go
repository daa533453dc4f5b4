package exactmatch

import (
	"fmt"
	"strings"
)

// All is the level of all questions together.
const All Hardness = "all"

// Report adds up scores by hardness, as the official script prints them.
type Report struct {
	Levels map[Hardness]*LevelReport
}

// LevelReport is the part of a report about questions of one hardness.
type LevelReport struct {
	Count, Exact int
	parts        []partSums
}

type partSums struct{ matches, pred, gold int }

// PartReport are the means of a part: Accuracy over the predictions that have it,
// Recall over the gold queries that have it. Both are 0 where none has. F1 is their
// harmonic mean, and 1 where both are 0, as the official script has it.
type PartReport struct {
	Accuracy float64 `json:"acc"`
	Recall   float64 `json:"rec"`
	F1       float64 `json:"f1"`
}

// NewReport returns an empty one.
func NewReport() *Report {
	r := &Report{map[Hardness]*LevelReport{}}
	for _, level := range append([]Hardness{All}, Levels...) {
		r.Levels[level] = &LevelReport{parts: make([]partSums, len(PartNames))}
	}
	return r
}

// Add counts one prediction.
func (r *Report) Add(level Hardness, score Score) {
	for _, l := range []*LevelReport{r.Levels[level], r.Levels[All]} {
		l.Count++
		l.Exact += count(score.Exact)
		for i, p := range score.Parts {
			sums := &l.parts[i]
			sums.matches += count(p.Match && (p.Pred > 0 || p.Gold > 0))
			sums.pred += count(p.Pred > 0)
			sums.gold += count(p.Gold > 0)
		}
	}
}

// Share is the share of exact matches.
func (l *LevelReport) Share() float64 { return ratio(l.Exact, l.Count) }

// Part returns the means of the part at an index of PartNames.
func (l *LevelReport) Part(i int) PartReport {
	s := l.parts[i]
	p := PartReport{Accuracy: ratio(s.matches, s.pred), Recall: ratio(s.matches, s.gold), F1: 1}
	if p.Accuracy+p.Recall > 0 {
		p.F1 = 2 * p.Accuracy * p.Recall / (p.Accuracy + p.Recall)
	}
	return p
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// String is the official script's table.
func (r *Report) String() string {
	var out strings.Builder
	levels := append(append([]Hardness{}, Levels...), All)
	row := func(name, format string, cell func(*LevelReport) any) {
		fmt.Fprintf(&out, "%-20s", name)
		for _, level := range levels {
			fmt.Fprintf(&out, " %-20s", fmt.Sprintf(format, cell(r.Levels[level])))
		}
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "%-20s", "")
	for _, level := range levels {
		fmt.Fprintf(&out, " %-20s", level)
	}
	out.WriteByte('\n')
	row("count", "%d", func(l *LevelReport) any { return l.Count })
	out.WriteString("\n====================== EXACT MATCHING ACCURACY =====================\n")
	row("exact match", "%.3f", func(l *LevelReport) any { return l.Share() })
	for _, block := range []struct {
		title string
		value func(PartReport) float64
	}{
		{"\n---------------------PARTIAL MATCHING ACCURACY----------------------", func(p PartReport) float64 { return p.Accuracy }},
		{"---------------------- PARTIAL MATCHING RECALL ----------------------", func(p PartReport) float64 { return p.Recall }},
		{"---------------------- PARTIAL MATCHING F1 --------------------------", func(p PartReport) float64 { return p.F1 }},
	} {
		fmt.Fprintln(&out, block.title)
		for i, name := range PartNames {
			row(name, "%.3f", func(l *LevelReport) any { return block.value(l.Part(i)) })
		}
	}
	return out.String()
}
