package deltarule

import (
	"math"
	"testing"

	"caper/engine"
	"caper/kernels/treetest"
)

// operator draws log decays from nearly none to -strength and more.
func operator(o Options, strength float64) treetest.Operator {
	unit := func(x float64) float64 { return x / math.Sqrt(float64(o.KeyDim)) } // rows of about unit length
	return treetest.Operator{
		Inputs: []treetest.Input{
			{Name: "q", Cols: o.KeyHeads * o.KeyDim, Fill: unit},
			{Name: "k", Cols: o.KeyHeads * o.KeyDim, Fill: unit},
			{Name: "v", Cols: o.ValueHeads * o.ValueDim},
			{Name: "g", Cols: o.ValueHeads, Fill: func(x float64) float64 { return -strength * x * x * x * x }},
			{Name: "beta", Cols: o.ValueHeads, Fill: func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }}},
		Outputs: 1,
		Run: func(t *engine.Tape, in, out []*engine.Tensor, tree *engine.Tree) {
			out[0] = Forward(t, in[0], in[1], in[2], in[3], in[4], tree, o)
		},
	}
}

var (
	tiny    = Options{KeyHeads: 1, ValueHeads: 2, KeyDim: 3, ValueDim: 2}
	grouped = Options{KeyHeads: 2, ValueHeads: 6, KeyDim: 16, ValueDim: 24}
	paired  = Options{KeyHeads: 2, ValueHeads: 2, KeyDim: 32, ValueDim: 64}
)

func TestDifferences(t *testing.T) {
	operator(tiny, 0.3).Differences(t, treetest.Small)
}

// The chunked form sums in another order than the recurrence: some tens of roundings
// of 6e-8. Gradients of g are sums in which most of every term cancels.
func TestCPU(t *testing.T) {
	for _, strength := range []float64{0.001, 0.1, 3} {
		operator(grouped, strength).CPU(t, treetest.Large, 2e-6, 5e-6)
	}
	operator(paired, 0.05).CPU(t, treetest.Large, 2e-6, 5e-6)
	operator(tiny, 0.3).CPU(t, treetest.Large, 2e-6, 5e-6)
}

// A decay of exp(-200) in the middle of a chunk must neither overflow nor cost the
// rows after it their accuracy.
func TestStrongDecay(t *testing.T) {
	op := operator(grouped, 0)
	n := 0
	op.Inputs[3].Fill = func(x float64) float64 {
		n++
		if n/grouped.ValueHeads%7 == 3 {
			return -200
		}
		return -1e-3 * x * x
	}
	op.CPU(t, treetest.Large, 2e-6, 5e-6)
}

func TestSequences(t *testing.T) {
	operator(tiny, 0.3).Sequences(t, engine.Reference(), treetest.Large, 1e-11)
	operator(grouped, 0.1).Sequences(t, engine.CPU(2), treetest.Large, 5e-6)
}

func TestAllocations(t *testing.T) {
	if n := operator(grouped, 0.1).Allocations(treetest.Large[5]); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}

// Hundreds of branches must not need more memory than their longest path does.
func TestMemoryFollowsThePath(t *testing.T) {
	step := func(branches int) int {
		shape := treetest.Shape{Parents: []int{-1}, Lengths: []int{100}}
		for range branches {
			shape.Parents = append(shape.Parents, 0)
			shape.Lengths = append(shape.Lengths, 1)
		}
		tree := shape.Tree()
		o := Options{KeyHeads: 1, ValueHeads: 1, KeyDim: 128, ValueDim: 128}
		levels, chunks := extent(tree)
		return (levels + chunks) * o.KeyDim * o.ValueDim
	}
	if one, many := step(1), step(500); one != many {
		t.Errorf("500 branches need states of %d numbers, one branch %d", many, one)
	}
}
