package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"caper/train/prm"
)

// curve is a line chart. The lines are drawn in a box of 100 x 100 that is
// stretched to the chart's size; text stands around it.
type curve struct {
	Title string
	X, Y  []tick
	Lines []line
}

// tick is a labelled place on an axis, in percent of its length.
type tick struct {
	At    float64
	Label string
}

// Down is the place of a tick of the vertical axis, from the top.
func (t tick) Down() float64 { return 100 - t.At }

// line is one run in a chart.
type line struct {
	Series int    // index of the run: its colour and dashes
	Faint  bool   // every step, behind the smoothed line
	Points string // as SVG writes them; y goes down
	Dots   []dot
}

type dot struct {
	X, Y  float64
	Best  bool // the validation whose model was kept
	Label string
}

type legendEntry struct {
	Series     int
	Name, Note string
}

// Points of a line at most: those that show every step, and those that show the
// trend.
const (
	faintPoints  = 500
	smoothPoints = 60
)

// startShare is the share of the steps at the start that do not widen the vertical
// axis: a new model's first losses would flatten all that follow.
const startShare = 0.05

// seriesStyles is the number of line styles in the style sheet.
const seriesStyles = 6

// metric is a curve to draw: what it takes from a line of metrics.jsonl.
type metric struct {
	title  string
	value  func(prm.Metrics) *float64
	bounds [2]float64 // what the axis shows at least
	share  bool       // drawn in percent
	dotted bool       // few values, each worth a dot, none to smooth
}

var metrics = []metric{
	{title: "Training loss", value: func(m prm.Metrics) *float64 { return m.Loss }, bounds: [2]float64{0, 0}},
	{title: "Training pairs ordered right, %", value: func(m prm.Metrics) *float64 { return m.Accuracy }, bounds: [2]float64{0.5, 1}, share: true},
	{title: "Validation Top-1, %", value: func(m prm.Metrics) *float64 { return m.Top1 }, bounds: [2]float64{0.5, 1}, share: true, dotted: true},
	{title: "Validation MRR, %", value: func(m prm.Metrics) *float64 { return m.MRR }, bounds: [2]float64{0.5, 1}, share: true, dotted: true},
}

// curves draws every metric that some run has.
func curves(runs []Run) []curve {
	var all []curve
	for _, m := range metrics {
		series := make([][]point, len(runs))
		any := false
		for i, run := range runs {
			series[i] = m.points(run.Metrics)
			any = any || len(series[i]) > 0
		}
		if any {
			all = append(all, m.draw(runs, series))
		}
	}
	return all
}

type point struct {
	x, y float64
	best bool
}

// points takes the finite values of a metric by step.
func (m metric) points(lines []prm.Metrics) []point {
	var points []point
	for _, l := range lines {
		y := m.value(l)
		if y == nil || math.IsNaN(*y) || math.IsInf(*y, 0) {
			continue
		}
		p := point{x: float64(l.Step), y: *y}
		if m.share {
			p.y *= 100
		}
		if l.Best { // the ones before were the best only so far
			for i := range points {
				points[i].best = false
			}
			p.best = true
		}
		points = append(points, p)
	}
	return points
}

// draw draws one metric of all runs. Every step is shown of the first run only,
// so that the trends of the others can be seen.
func (m metric) draw(runs []Run, series [][]point) curve {
	x, y := axis{low: 0, high: 1}, axis{low: m.bounds[0], high: m.bounds[1]}
	if m.share {
		y = axis{low: 100 * y.low, high: 100 * y.high}
	}
	longest := 1
	for _, points := range series {
		longest = max(longest, len(points))
		for _, p := range points {
			x.high = max(x.high, p.x)
		}
	}
	for i, points := range series {
		if !m.dotted { // bins as wide for a short run as for a long one
			series[i] = binned(points, (smoothPoints*len(points)+longest-1)/longest)
		}
		for _, p := range series[i] {
			if m.dotted || p.x > startShare*x.high {
				y.low, y.high = min(y.low, p.y), max(y.high, p.y)
			}
		}
	}
	y.round()
	c := curve{Title: m.title, X: x.ticks(), Y: y.ticks()}
	if !m.dotted {
		all := binned(m.points(runs[0].Metrics), faintPoints)
		c.Lines = append(c.Lines, line{Faint: true, Points: polyline(all, x, y)})
	}
	for i, points := range series {
		l := line{Series: i % seriesStyles, Points: polyline(points, x, y)}
		if m.dotted || len(points) == 1 {
			for _, p := range points {
				l.Dots = append(l.Dots, dot{x.place(p.x), 100 - y.place(p.y), p.best, fmt.Sprintf("%s, step %.0f: %.1f", runs[i].Name, p.x, p.y)})
			}
		}
		if len(points) > 0 {
			c.Lines = append(c.Lines, l)
		}
	}
	return c
}

// binned replaces runs of neighbours by their mean, so that at most n points are
// left.
func binned(points []point, n int) []point {
	size := (len(points) + n - 1) / n
	if size <= 1 {
		return points
	}
	var bins []point
	for start := 0; start < len(points); start += size {
		bin := points[start:min(start+size, len(points))]
		var mean point
		for _, p := range bin {
			mean.x += p.x / float64(len(bin))
			mean.y += p.y / float64(len(bin))
		}
		bins = append(bins, mean)
	}
	return bins
}

func polyline(points []point, x, y axis) string {
	var b strings.Builder
	for _, p := range points {
		fmt.Fprintf(&b, "%.2f,%.2f ", x.place(p.x), 100-y.place(p.y))
	}
	return strings.TrimSpace(b.String())
}

// axis is a range of values, never empty.
type axis struct{ low, high float64 }

// place returns where a value lies, in percent; values beyond an end lie on it.
func (a axis) place(v float64) float64 {
	return 100 * min(max((v-a.low)/(a.high-a.low), 0), 1)
}

// step is the distance of ticks: 1, 2 or 5 times a power of ten, for three to
// seven of them.
func (a axis) step() float64 {
	power := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/3)))
	for _, factor := range []float64{1, 2, 5} {
		if (a.high-a.low)/(factor*power) <= 6 {
			return factor * power
		}
	}
	return 10 * power
}

// round widens the axis to ticks at both ends. Ends that differ in their last bits
// only have no room for ticks between them.
func (a *axis) round() {
	size := max(math.Abs(a.low), math.Abs(a.high))
	if a.high-a.low <= max(1e-9*size, 1e-300) {
		a.high += max(1, 1e-6*size)
	}
	step := a.step()
	a.low, a.high = math.Floor(a.low/step)*step, math.Ceil(a.high/step)*step
}

func (a axis) ticks() []tick {
	var ticks []tick
	step := a.step()
	for i := math.Ceil(a.low / step); i*step <= a.high+step/1e6; i++ {
		ticks = append(ticks, tick{a.place(i * step), strconv.FormatFloat(i*step, 'g', 6, 64)})
	}
	return ticks
}

func legend(runs []Run) []legendEntry {
	entries := make([]legendEntry, len(runs))
	for i, run := range runs {
		entries[i] = legendEntry{i % seriesStyles, run.Name, run.Note}
	}
	return entries
}
