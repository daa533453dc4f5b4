package residual

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

func operator(rows, cols int) optest.Case {
	return optest.Case{
		Name:   fmt.Sprintf("%dx%d", rows, cols),
		Inputs: []optest.Input{{Name: "x", Rows: rows, Cols: cols}, {Name: "y", Rows: rows, Cols: cols}},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], in[1]))
		},
		Tolerance: 6e-8, // one rounding
		BF16:      4e-3, // one, to 8 bits
		RowWise:   true,
	}
}

func Test(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {3, 15}, {33, 17}, {70, 100}} {
		optest.Run(t, operator(shape[0], shape[1]))
	}
}

// x + x: both gradients go to the same tensor.
func TestTwice(t *testing.T) {
	c := operator(40, 9)
	c.Inputs = c.Inputs[:1]
	c.Forward = func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
		return append(out, Forward(t, in[0], in[0]))
	}
	optest.Run(t, c)
}
