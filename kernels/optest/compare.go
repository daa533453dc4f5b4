package optest

import (
	"fmt"
	"math"
)

// near reports the worst element of got when it is farther from want than the
// tolerance allows. A NaN is always too far.
func near(what string, got, want []float64, tolerance float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
	}
	scale := rms(want)
	worst, at := 0.0, -1
	for e := range want {
		d := math.Abs(got[e]-want[e]) / (math.Abs(want[e]) + scale)
		if got[e] == want[e] {
			d = 0
		}
		if !(d <= worst) {
			worst, at = d, e
		}
		if math.IsNaN(d) {
			break
		}
	}
	if !(worst <= tolerance) {
		return fmt.Errorf("%s: element %d is %g, want %g: off by %.2g, tolerance %.2g", what, at, got[at], want[at], worst, tolerance)
	}
	return nil
}

// same reports the first element in which two results are not the same bits.
func same(what string, got, want result) error {
	if err := sameElements(what, "result", got.out, want.out); err != nil {
		return err
	}
	return sameElements(what, "gradient", got.grad, want.grad)
}

func sameElements(what, kind string, got, want [][]float64) error {
	for i := range want {
		if len(got[i]) != len(want[i]) {
			return fmt.Errorf("%s: %s %d has %d elements, want %d", what, kind, i, len(got[i]), len(want[i]))
		}
		for e := range want[i] {
			if math.Float64bits(got[i][e]) != math.Float64bits(want[i][e]) {
				return fmt.Errorf("%s: element %d of %s %d is %g, otherwise %g", what, e, kind, i, got[i][e], want[i][e])
			}
		}
	}
	return nil
}

// rms is the root mean square.
func rms(x []float64) float64 {
	var s float64
	for _, v := range x {
		s += v * v
	}
	return math.Sqrt(s / float64(max(len(x), 1)))
}
