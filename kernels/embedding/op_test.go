package embedding

import (
	"fmt"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

// tokens returns n ids of a table, some of them many times and some never.
func tokens(n, vocabulary int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i * i * i % vocabulary)
	}
	return ids
}

func operator(n, vocabulary, cols int) optest.Case {
	ids := tokens(n, vocabulary)
	return optest.Case{
		Name:   fmt.Sprintf("%d of %dx%d", n, vocabulary, cols),
		Inputs: []optest.Input{{Name: "table", Rows: vocabulary, Cols: cols, Weight: true}},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], ids))
		},
		// The forward pass copies; the backward pass sums at most n/4 terms.
		Tolerance: 5e-7,
		BF16:      1e-6, // the same: what is summed is bf16, the sum float32
	}
}

func Test(t *testing.T) {
	for _, shape := range [][3]int{{1, 1, 1}, {5, 3, 15}, {33, 9, 64}, {100, 50, 130}} {
		optest.Run(t, operator(shape[0], shape[1], shape[2]))
	}
}

func TestOutsideTable(t *testing.T) {
	defer func() {
		want := "embedding: token 4 of row 1 is outside the table [4 x 2] float32"
		if got := recover(); got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}()
	tape := engine.NewTape(engine.CPU(1))
	Forward(tape, tape.Zeros(4, 2), []int32{3, 4})
}
