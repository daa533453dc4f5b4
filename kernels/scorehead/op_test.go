package scorehead

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

// named returns count of n rows, one of them twice.
func named(n, count int) []int32 {
	rows := make([]int32, count)
	for i := range rows {
		rows[i] = int32(i * 7 % n)
	}
	rows[count-1] = rows[0]
	return rows
}

func operator(n, cols, labels, count int) optest.Case {
	rows := named(n, count)
	return optest.Case{
		Name: fmt.Sprintf("%d of %dx%d, %d labels", count, n, cols, labels),
		Inputs: []optest.Input{
			{Name: "hidden", Rows: n, Cols: cols},
			{Name: "w", Rows: labels, Cols: cols, Weight: true, BF16: 1e-6},
		},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], in[1], rows))
		},
		// Sums of cols (here up to 100) products with a rounding of 6e-8 each.
		Tolerance: 1e-6,
		BF16:      4e-3, // gradients are rounded to 8 bits
	}
}

func Test(t *testing.T) {
	for _, shape := range [][4]int{{1, 1, 1, 1}, {5, 15, 1, 3}, {50, 64, 2, 40}, {9, 100, 3, 5}} {
		optest.Run(t, operator(shape[0], shape[1], shape[2], shape[3]))
	}
}

func TestOutsideHidden(t *testing.T) {
	defer func() {
		want := "scorehead: row 4 is outside [4 x 2] float32"
		if got := recover(); got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}()
	tape := engine.NewTape(engine.CPU(1))
	Forward(tape, tape.Zeros(4, 2), tape.Zeros(1, 2), []int32{4})
}
