package attention

import (
	"math"
	"slices"
	"testing"

	"caper/engine"
	"caper/kernels/treetest"
)

func operator(o Options, gated bool) treetest.Operator {
	op := treetest.Operator{
		Inputs: []treetest.Input{
			{Name: "q", Cols: o.Heads * o.Dim}, {Name: "k", Cols: o.KVHeads * o.Dim}, {Name: "v", Cols: o.KVHeads * o.Dim}},
		Outputs: 1,
	}
	if gated {
		op.Inputs = append(op.Inputs, treetest.Input{Name: "gate", Cols: o.Heads * o.GateStride})
	}
	op.Run = func(t *engine.Tape, in, out []*engine.Tensor, tree *engine.Tree) {
		var gate *engine.Tensor
		if gated {
			gate = in[3]
		}
		out[0] = Forward(t, in[0], in[1], in[2], gate, tree, o)
	}
	return op
}

var (
	plain   = Options{Heads: 2, KVHeads: 2, Dim: 4}
	gated   = Options{Heads: 4, KVHeads: 2, Dim: 3, GateStride: 6, GateOffset: 3}
	grouped = Options{Heads: 6, KVHeads: 2, Dim: 20, GateStride: 40, GateOffset: 20}
)

func TestDifferences(t *testing.T) {
	operator(plain, false).Differences(t, treetest.Small)
	operator(gated, true).Differences(t, treetest.Small)
}

// Dot products of length Dim, then sums over up to 193 keys: a few roundings of 6e-8.
func TestCPU(t *testing.T) {
	operator(plain, false).CPU(t, treetest.Large, 1e-6, 2e-6)
	operator(grouped, true).CPU(t, treetest.Large, 1e-6, 2e-6)
}

func TestSequences(t *testing.T) {
	operator(gated, true).Sequences(t, engine.Reference(), treetest.Large, 1e-12)
	operator(grouped, true).Sequences(t, engine.CPU(2), treetest.Large, 2e-6)
}

// The same token sequence must give the same bits however it is cut into segments.
func TestBitsDoNotDependOnSegments(t *testing.T) {
	const n = 200
	dev := engine.CPU(1)
	forward := func(lengths ...int) []float32 {
		shape := treetest.Shape{Lengths: lengths}
		for i := range lengths {
			shape.Parents = append(shape.Parents, i-1)
		}
		tree, tape := shape.Tree(), engine.NewTape(dev)
		draw := func(cols int) *engine.Tensor {
			x := tape.New(n, cols)
			rng := engine.Random(1, "test", uint64(cols), 0)
			for i := range x.F32 {
				x.F32[i] = float32(rng.NormFloat64())
			}
			return x
		}
		o := grouped
		kv := draw(o.KVHeads * o.Dim)
		return Forward(tape, draw(o.Heads*o.Dim), kv, kv, nil, tree, o).F32
	}
	want := forward(n)
	for _, cut := range [][]int{{1, n - 1}, {63, 1, n - 64}, {64, 64, n - 128}, {70, 9, 1, 1, 50, n - 131}} {
		if !slices.Equal(forward(cut...), want) {
			t.Errorf("segments of %v tokens give other bits than one segment", cut)
		}
	}
}

// A value that is not a number reaches the rows that see it and no other.
func TestLaterTokensDoNotLeak(t *testing.T) {
	tree := treetest.Shape{Parents: []int{-1, 0, 0}, Lengths: []int{5, 3, 3}}.Tree()
	tape := engine.NewTape(engine.CPU(1))
	o := plain
	x := tape.Zeros(tree.Rows(), o.Heads*o.Dim)
	for c := range x.Cols {
		x.Set(6, c, math.NaN())
	}
	y := Forward(tape, tape.Zeros(tree.Rows(), o.Heads*o.Dim), x, x, nil, tree, o)
	for i := range y.Rows {
		sees := slices.Contains(tree.Path(nil, int32(i)), 6)
		if isNaN := y.At(i, 0) != y.At(i, 0); isNaN != sees {
			t.Errorf("row %d: not a number %v, sees row 6 %v", i, isNaN, sees)
		}
	}
}

func TestAllocations(t *testing.T) {
	if n := operator(grouped, true).Allocations(treetest.Large[5]); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}
