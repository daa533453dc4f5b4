package linear

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

func operator(rows, out, in int) optest.Case {
	return optest.Case{
		Name:   fmt.Sprintf("%dx%dx%d", rows, out, in),
		Inputs: []optest.Input{{Name: "x", Rows: rows, Cols: in}, {Name: "w", Rows: out, Cols: in, Weight: true}},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], in[1]))
		},
		// Sums of up to 300 products, one rounding of 6e-8 each: a random walk of
		// about 1e-6 against the size of the sum.
		Tolerance: 2e-6,
		// One rounding of results to 8 bits; sums are float32.
		BF16:    4e-3,
		RowWise: rows != out,
	}
}

func Test(t *testing.T) {
	for _, shape := range [][3]int{{1, 2, 1}, {3, 1, 40}, {14, 33, 17}, {15, 32, 64}, {43, 31, 300}, {65, 96, 24}} {
		optest.Run(t, operator(shape[0], shape[1], shape[2]))
	}
}
