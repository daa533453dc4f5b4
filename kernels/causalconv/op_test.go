package causalconv

import (
	"testing"

	"caper/engine"
	"caper/kernels/optest"
	"caper/kernels/treetest"
)

func build(channels, taps int) func(*engine.Tree) optest.Case {
	return func(tree *engine.Tree) optest.Case {
		return optest.Case{
			Inputs: []optest.Input{
				{Name: "x", Rows: tree.Rows(), Cols: channels},
				// A sum over the rows: rounding grows with the square root of their number.
				{Name: "w", Rows: channels, Cols: taps, Tolerance: 3e-6, Weight: true, BF16: 1e-5},
			},
			Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
				return append(out, Forward(t, in[0], in[1], tree))
			},
			// A few products and an exponential, roundings of 6e-8.
			Tolerance: 1e-6,
			BF16:      4e-3, // one rounding to 8 bits
		}
	}
}

func Test(t *testing.T) {
	treetest.Run(t, treetest.Shapes, build(70, 4))
	treetest.Run(t, treetest.Shapes, build(3, 2))
	treetest.Run(t, treetest.Shapes, build(2, 1))
}

func TestIsolated(t *testing.T) { treetest.Isolated(t, build(70, 4)) }

func TestSequences(t *testing.T) {
	treetest.Sequences(t, engine.Reference(), build(5, 4), 1e-12)
	treetest.Sequences(t, engine.CPU(2), build(130, 4), 2e-6)
}
