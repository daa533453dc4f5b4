package swiglu

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

func operator(rows, cols int) optest.Case {
	return optest.Case{
		Name: fmt.Sprintf("%dx%d", rows, cols),
		Inputs: []optest.Input{
			{Name: "gate", Rows: rows, Cols: cols, Deviation: 3},
			{Name: "up", Rows: rows, Cols: cols},
		},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], in[1]))
		},
		// A handful of roundings of 6e-8, and 1.5e-7 from the sigmoid.
		Tolerance: 5e-7,
		BF16:      4e-3, // one rounding to 8 bits
		RowWise:   true,
	}
}

func Test(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {3, 15}, {2, 16}, {33, 17}, {70, 100}} {
		optest.Run(t, operator(shape[0], shape[1]))
	}
}

// Where the sigmoid saturates neither result nor gradient may overflow.
func TestLargeInputs(t *testing.T) {
	c := operator(1, 7)
	c.Inputs[0].Values = []float64{-1e4, -100, -60, 0, 60, 100, 1e4}
	optest.Run(t, c)
}
