package report

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"caper/train/prm"
)

func TestAxis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
		checkAxis(t, axis{low, low + rapid.Float64Range(0, 1e6).Draw(t, "width")})
	})
}

// Two values next to each other, or as good as zero, still give an axis of a few
// ticks.
func TestNarrowAxis(t *testing.T) {
	for _, low := range []float64{0, 0.7, -0.7, 1e6, -1e6, 1e20} {
		checkAxis(t, axis{low, low})
		checkAxis(t, axis{low, math.Nextafter(low, math.Inf(1))})
		checkAxis(t, axis{low, low + 1e-9*math.Abs(low)})
	}
}

func checkAxis(t rapid.TB, a axis) {
	before := a
	a.round()
	rounding := a.step() / 1e6
	if a.low > before.low+rounding || a.high < before.high-rounding || a.high <= a.low {
		t.Fatalf("%v became %v", before, a)
	}
	ticks := a.ticks()
	if len(ticks) < 2 || len(ticks) > 9 {
		t.Fatalf("%d ticks on %v", len(ticks), a)
	}
	for i, tick := range ticks {
		if !(tick.At >= 0 && tick.At <= 100) || i > 0 && tick.At <= ticks[i-1].At {
			t.Fatalf("ticks %v on %v", ticks, a)
		}
	}
}

// Smoothing keeps the number of points in bounds, their order and their mean.
func TestBinned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Full bins, so that their means weigh the same.
		n, size := rapid.IntRange(1, 80).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "size")
		ys := rapid.SliceOfN(rapid.Float64Range(-10, 10), n*size, n*size).Draw(t, "values")
		var points []point
		sum := 0.0
		for i, y := range ys {
			points = append(points, point{x: float64(i), y: y})
			sum += y
		}
		bins := binned(points, n)
		if len(bins) != n {
			t.Fatalf("%d points, want %d", len(bins), n)
		}
		total := 0.0
		for i, b := range bins {
			total += b.y
			if i > 0 && b.x <= bins[i-1].x {
				t.Fatalf("out of order: %v", bins)
			}
		}
		if math.Abs(total/float64(len(bins))-sum/float64(len(ys))) > 1e-9 {
			t.Fatalf("mean %v became %v", sum/float64(len(ys)), total/float64(len(bins)))
		}
	})
}

func TestCurvesMarkTheKeptModel(t *testing.T) {
	runs := fullPage().Runs
	for _, c := range curves(runs) {
		for _, l := range c.Lines {
			kept := 0
			for _, d := range l.Dots {
				if d.Best {
					kept++
				}
			}
			if len(l.Dots) > 0 && kept != 1 {
				t.Errorf("%s: run %d: %d validations marked as the best", c.Title, l.Series, kept)
			}
		}
	}
}

// The first losses of a new model do not flatten the rest of the curve.
func TestStartDoesNotSetTheScale(t *testing.T) {
	var lines []prm.Metrics
	for step := range 1000 {
		loss := 1.0
		if step < 20 {
			loss = 50
		}
		lines = append(lines, prm.Metrics{Step: step + 1, Loss: &loss})
	}
	c := curves([]Run{{Name: "run", Metrics: lines}})[0]
	if top := c.Y[len(c.Y)-1].Label; top != "1" {
		t.Errorf("the axis ends at %s, want 1", top)
	}
}

// A short run is smoothed over as many steps as a long one.
func TestSmoothingIsAsWideForShortRuns(t *testing.T) {
	long := make([]prm.Metrics, 600)
	for i := range long {
		loss := float64(i)
		long[i] = prm.Metrics{Step: i, Loss: &loss}
	}
	c := curves([]Run{{Name: "long", Metrics: long}, {Name: "short", Metrics: long[:100]}})[0]
	for i, want := range []int{smoothPoints, smoothPoints / 6} {
		line := c.Lines[i+1] // behind the faint one
		if got := len(strings.Fields(line.Points)); got != want {
			t.Errorf("run %d: %d points, want %d", i, got, want)
		}
	}
}

// Runs of other kinds have no values of a metric: there is no line of them.
func TestRunWithoutTheMetric(t *testing.T) {
	m := metric{title: "entropy"}
	c := m.draw([]string{"sft", "grpo"}, [][]point{nil, {{x: 1, y: 2}, {x: 2, y: 3}}}, false)
	if len(c.Lines) != 1 || c.Lines[0].Series != 1 {
		t.Errorf("lines %+v, want that of the second run alone", c.Lines)
	}
}
