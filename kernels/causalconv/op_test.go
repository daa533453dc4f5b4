package causalconv

import (
	"testing"

	"caper/engine"
	"caper/kernels/treetest"
)

func operator(channels, taps int) treetest.Operator {
	return treetest.Operator{
		Inputs:  []treetest.Input{{Name: "x", Cols: channels}, {Name: "w", Rows: channels, Cols: taps}},
		Outputs: 1,
		Run: func(t *engine.Tape, in, out []*engine.Tensor, tree *engine.Tree) {
			out[0] = Forward(t, in[0], in[1], tree)
		},
	}
}

func TestDifferences(t *testing.T) {
	operator(3, 4).Differences(t, treetest.Small)
	operator(2, 1).Differences(t, treetest.Small)
}

// Sums of four products, and of one product per row for w: rounding of 6e-8 a term.
func TestCPU(t *testing.T) {
	operator(70, 4).CPU(t, treetest.Large, 1e-6, 2e-6)
	operator(3, 2).CPU(t, treetest.Large, 1e-6, 2e-6)
}

func TestSequences(t *testing.T) {
	operator(3, 4).Sequences(t, engine.Reference(), treetest.Large, 1e-12)
	operator(130, 4).Sequences(t, engine.CPU(2), treetest.Large, 2e-6)
}

func TestAllocations(t *testing.T) {
	if n := operator(64, 4).Allocations(treetest.Large[5]); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}
