package deltagate

import (
	"testing"

	"caper/engine"
	"caper/kernels/treetest"
)

// The operator does not look at the tree; the shapes only give numbers of rows.
func operator(heads int) treetest.Operator {
	return treetest.Operator{
		Inputs: []treetest.Input{
			{Name: "a", Cols: heads, Fill: func(x float64) float64 { return 8 * x }}, // some above softplus's border at 20
			{Name: "b", Cols: heads, Fill: func(x float64) float64 { return 3 * x }},
			{Name: "aLog", Rows: 1, Cols: heads}, {Name: "dtBias", Rows: 1, Cols: heads}},
		Outputs: 2,
		Run: func(t *engine.Tape, in, out []*engine.Tensor, _ *engine.Tree) {
			out[0], out[1] = Forward(t, in[0], in[1], in[2], in[3])
		},
	}
}

func TestDifferences(t *testing.T) { operator(3).Differences(t, treetest.Small) }

// A handful of operations an element; the sums over rows cancel in part.
func TestCPU(t *testing.T) {
	operator(3).CPU(t, treetest.Large, 1e-6, 3e-6)
	operator(20).CPU(t, treetest.Large, 1e-6, 3e-6)
}

func TestAllocations(t *testing.T) {
	if n := operator(4).Allocations(treetest.Large[5]); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}
