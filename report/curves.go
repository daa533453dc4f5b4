package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"caper/train/prm"
)

// curve is a line chart. The lines are drawn in a box of 100 x 100 that is
// stretched to the chart's size; text stands around it.
type curve struct {
	Title  string
	X, Y   []tick
	Lines  []line
	Legend []legendEntry // of lines that are not runs
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

// metric is a curve to draw.
type metric struct {
	title  string
	bounds [2]float64 // what the axis shows at least
	share  bool       // drawn in percent
	dotted bool       // few values, each worth a dot, none to smooth
}

// rewardMetric is a metric of a reward model: what it takes from a line of metrics.jsonl.
type rewardMetric struct {
	metric
	value func(prm.Metrics) *float64
}

var rewardMetrics = []rewardMetric{
	{metric{title: "Training loss"}, func(m prm.Metrics) *float64 { return m.Loss }},
	{metric{title: "Training pairs ordered right, %", bounds: [2]float64{0.5, 1}, share: true}, func(m prm.Metrics) *float64 { return m.Accuracy }},
	{metric{title: "Validation Top-1, %", bounds: [2]float64{0.5, 1}, share: true, dotted: true}, func(m prm.Metrics) *float64 { return m.Top1 }},
	{metric{title: "Validation MRR, %", bounds: [2]float64{0.5, 1}, share: true, dotted: true}, func(m prm.Metrics) *float64 { return m.MRR }},
}

// curves draws every metric that some run has.
func curves(runs []Run) []curve {
	names := make([]string, len(runs))
	for i, run := range runs {
		names[i] = run.Name
	}
	var all []curve
	for _, m := range rewardMetrics {
		lines := make([][]point, len(runs))
		for i, run := range runs {
			lines[i] = m.points(run.Metrics)
		}
		if anyPoints(lines) {
			all = append(all, m.draw(names, lines, true))
		}
	}
	return all
}

func anyPoints(lines [][]point) bool {
	return slices.ContainsFunc(lines, func(points []point) bool { return len(points) > 0 })
}

type point struct {
	x, y float64
	best bool
}

// points takes the finite values of a metric by step.
func (m rewardMetric) points(lines []prm.Metrics) []point {
	var points []point
	for _, l := range lines {
		if y := m.value(l); y != nil {
			points = m.add(points, l.Step, *y, l.Best)
		}
	}
	return points
}

// add appends a value, if it is finite.
func (m metric) add(points []point, step int, y float64, best bool) []point {
	if math.IsNaN(y) || math.IsInf(y, 0) {
		return points
	}
	if m.share {
		y *= 100
	}
	if best { // the ones before were the best only so far
		for i := range points {
			points[i].best = false
		}
	}
	return append(points, point{float64(step), y, best})
}

// draw draws one metric as lines of the given names. With faint, every step is shown of
// the first one only, so that the trends of the others can be seen.
func (m metric) draw(names []string, series [][]point, faint bool) curve {
	x, y := axis{low: 0, high: 1}, axis{low: m.bounds[0], high: m.bounds[1]}
	if m.share {
		y = axis{low: 100 * y.low, high: 100 * y.high}
	}
	longest, first := 1, series[0]
	for _, points := range series {
		longest = max(longest, len(points))
		for _, p := range points {
			x.high = max(x.high, p.x)
		}
	}
	for i, points := range series {
		if !m.dotted && len(points) > 0 { // bins as wide for a short run as for a long one
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
	if faint && !m.dotted {
		c.Lines = append(c.Lines, line{Faint: true, Points: polyline(binned(first, faintPoints), x, y)})
	}
	for i, points := range series {
		l := line{Series: i % seriesStyles, Points: polyline(points, x, y)}
		if m.dotted || len(points) == 1 {
			for _, p := range points {
				l.Dots = append(l.Dots, dot{x.place(p.x), 100 - y.place(p.y), p.best, fmt.Sprintf("%s, step %.0f: %.1f", names[i], p.x, p.y)})
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
