package deltagate

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

func operator(rows, heads int) optest.Case {
	return optest.Case{
		Name: fmt.Sprintf("%dx%d", rows, heads),
		Inputs: []optest.Input{
			{Name: "a", Rows: rows, Cols: heads, Deviation: 8}, // some above softplus's border at 20
			{Name: "b", Rows: rows, Cols: heads, Deviation: 3},
			// Sums over the rows whose terms cancel in part.
			{Name: "aLog", Rows: 1, Cols: heads, Tolerance: 5e-6, Weight: true, Float32: true, BF16: 5e-6},
			{Name: "dtBias", Rows: 1, Cols: heads, Tolerance: 5e-6, Weight: true, Float32: true, BF16: 5e-6},
		},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			g, beta := Forward(t, in[0], in[1], in[2], in[3])
			return append(out, g, beta)
		},
		// Two functions of 2e-7 and a product.
		Tolerance: 1e-6,
		BF16:      4e-3,     // gradients are rounded to 8 bits
		RowWise:   rows > 1, // with one row the constants would be taken for a row's
	}
}

func Test(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {2, 16}, {5, 3}, {127, 20}, {128, 4}, {129, 33}, {300, 4}} {
		optest.Run(t, operator(shape[0], shape[1]))
	}
}
