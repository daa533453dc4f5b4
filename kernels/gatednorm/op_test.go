package gatednorm

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

func operator(rows, heads, dim int) optest.Case {
	return optest.Case{
		Name: fmt.Sprintf("%d rows, %d heads of %d", rows, heads, dim),
		Inputs: []optest.Input{
			{Name: "x", Rows: rows, Cols: heads * dim, Deviation: 2},
			{Name: "z", Rows: rows, Cols: heads * dim, Deviation: 3},
			// Sums over rows and heads: rounding grows with the root of their number.
			{Name: "w", Rows: 1, Cols: dim, Mean: 1, Deviation: 0.2, Tolerance: 2e-6, Weight: true, BF16: 2e-5},
		},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], in[1], in[2], dim, 1e-6))
		},
		// 1.5e-7 from the sigmoid, and a handful of roundings of 6e-8.
		Tolerance: 8e-7,
		BF16:      4e-3, // one rounding to 8 bits
		RowWise:   rows > 1,
	}
}

func Test(t *testing.T) {
	for _, shape := range [][3]int{{1, 1, 3}, {2, 3, 15}, {33, 2, 16}, {70, 4, 33}} {
		optest.Run(t, operator(shape[0], shape[1], shape[2]))
	}
}
