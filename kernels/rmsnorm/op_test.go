package rmsnorm

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

func operator(rows, cols int, offset bool) optest.Case {
	mean := 1.0
	if offset {
		mean = 0
	}
	return optest.Case{
		Name: fmt.Sprintf("%dx%d offset=%v", rows, cols, offset),
		Inputs: []optest.Input{
			{Name: "x", Rows: rows, Cols: cols, Deviation: 2},
			// Sums over the rows: rounding grows with the square root of their number.
			{Name: "w", Rows: 1, Cols: cols, Mean: mean, Deviation: 0.2, Tolerance: 1e-6, Weight: true},
		},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], in[1], 1e-6, offset))
		},
		// A sum of cols squares in sixteen lanes, and five roundings of 6e-8.
		Tolerance: 5e-7,
		// Results are rounded to 8 bits, and without the offset the normalised row before, too.
		BF16:    8e-3,
		RowWise: rows > 1, // with one row the weight would be taken for a row input
	}
}

func Test(t *testing.T) {
	for _, offset := range []bool{false, true} {
		for _, shape := range [][2]int{{1, 3}, {2, 15}, {33, 16}, {31, 33}, {150, 100}} {
			optest.Run(t, operator(shape[0], shape[1], offset))
		}
	}
}

// A row of zeros has no direction: the result is 0 and the gradient eps^-1/2 times
// the incoming one, but both are finite.
func TestZeroRow(t *testing.T) {
	tape := engine.NewTape(engine.CPU(1))
	x := tape.Zeros(1, 20)
	y := Forward(tape, x, tape.Zeros(1, 20), 1e-6, true)
	tape.Seed(y, 0, 1)
	tape.Backward()
	if got := tape.Gradient(x).At(0, 0); !(got > 999 && got < 1001) {
		t.Errorf("gradient at 0 is %g, want eps^-1/2 = 1000", got)
	}
	for j := range 20 {
		if y.At(0, j) != 0 {
			t.Errorf("column %d of a row of zeros is %g", j, y.At(0, j))
		}
	}
}
