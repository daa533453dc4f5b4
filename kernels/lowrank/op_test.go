package lowrank

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/linear"
	"caper/kernels/optest"
)

// operator is a linear map with an addition of the given rank, as models use the two.
func operator(rows, out, in, rank int) optest.Case {
	return optest.Case{
		Name: fmt.Sprintf("%dx%dx%d rank %d", rows, out, in, rank),
		Inputs: []optest.Input{
			{Name: "x", Rows: rows, Cols: in}, {Name: "w", Rows: out, Cols: in, Weight: true},
			{Name: "a", Rows: rank, Cols: in, Weight: true}, {Name: "b", Rows: out, Cols: rank, Weight: true},
		},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			y := linear.Forward(t, in[0], in[1])
			Add(t, y, in[0], in[2], in[3], 0.75)
			return append(out, y)
		},
		// Two products behind each other of up to 300 and 40 terms: as linear's, whose
		// tolerance is 2e-6, and again.
		Tolerance: 4e-6,
		// Products are rounded to 8 bits, what is between the two once more, and so are sums of
		// two such results that cancel in part.
		BF16:    2e-2,
		RowWise: rows != out && rows != rank,
	}
}

func Test(t *testing.T) {
	for _, shape := range [][4]int{{1, 2, 1, 1}, {3, 1, 40, 2}, {14, 33, 17, 5}, {43, 31, 300, 16}, {65, 96, 24, 40}} {
		optest.Run(t, operator(shape[0], shape[1], shape[2], shape[3]))
	}
}

func TestShapes(t *testing.T) {
	defer func() {
		want := "lowrank: y [2 x 3] float32, x [2 x 4] float32, a [1 x 4] float32, b [3 x 2] float32: want [N, out], [N, in], [R, in], [out, R]"
		if got := recover(); got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}()
	tape := engine.NewTape(engine.CPU(1))
	Add(tape, tape.Zeros(2, 3), tape.Zeros(2, 4), tape.Zeros(1, 4), tape.Zeros(3, 2), 1)
}
