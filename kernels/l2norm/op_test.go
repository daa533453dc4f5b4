package l2norm

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

func operator(rows, heads, dim int) optest.Case {
	return optest.Case{
		Name:   fmt.Sprintf("%d rows, %d heads of %d", rows, heads, dim),
		Inputs: []optest.Input{{Name: "x", Rows: rows, Cols: heads * dim, Deviation: 2}},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], heads, dim, 1e-6))
		},
		// Sums over dim in sixteen lanes, and five roundings of 6e-8.
		Tolerance: 5e-7,
		BF16:      4e-3, // one rounding to 8 bits
		RowWise:   true,
	}
}

func Test(t *testing.T) {
	for _, shape := range [][3]int{{1, 1, 3}, {2, 3, 15}, {33, 2, 16}, {40, 4, 33}} {
		optest.Run(t, operator(shape[0], shape[1], shape[2]))
	}
}

// A head of zeros stays zero; its gradient is eps^-1/2 times the incoming one.
func TestZeroHead(t *testing.T) {
	tape := engine.NewTape(engine.CPU(1))
	x := tape.Zeros(1, 40)
	y := Forward(tape, x, 2, 20, 1e-6)
	tape.Seed(y, 0, 1)
	tape.Backward()
	if got := tape.Gradient(x).At(0, 0); !(got > 999 && got < 1001) {
		t.Errorf("gradient at 0 is %g, want eps^-1/2 = 1000", got)
	}
	if y.At(0, 0) != 0 || y.At(0, 39) != 0 {
		t.Error("a head of zeros did not stay zero")
	}
}
