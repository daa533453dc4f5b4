package deltarule

import (
	"math"
	"slices"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
	"caper/kernels/treetest"
)

// build makes cases whose log decays are drawn by decay from normal numbers.
func build(o Options, decay func(float64) float64) func(*engine.Tree) optest.Case {
	return func(tree *engine.Tree) optest.Case {
		n := tree.Rows()
		sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
		return optest.Case{
			Inputs: []optest.Input{
				{Name: "q", Rows: n, Cols: o.KeyHeads * o.KeyDim, Values: unit("q", n*o.KeyHeads, o.KeyDim)},
				{Name: "k", Rows: n, Cols: o.KeyHeads * o.KeyDim, Values: unit("k", n*o.KeyHeads, o.KeyDim)},
				{Name: "v", Rows: n, Cols: o.ValueHeads * o.ValueDim},
				{Name: "g", Rows: n, Cols: o.ValueHeads, Float32: true, Values: treetest.Draw("g", n*o.ValueHeads, decay)},
				{Name: "beta", Rows: n, Cols: o.ValueHeads, Float32: true, Values: treetest.Draw("beta", n*o.ValueHeads, sigmoid)},
			},
			Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
				return append(out, Forward(t, in[0], in[1], in[2], in[3], in[4], tree, o))
			},
			// Chunks sum in another order than the recurrence: tens of roundings of 6e-8.
			Tolerance: 1e-5,
		}
	}
}

// unit returns n vectors of length 1. Longer keys would make the recurrence grow.
func unit(input string, n, dim int) []float64 {
	x := treetest.Draw(input, n*dim, func(x float64) float64 { return x })
	for v := range slices.Chunk(x, dim) {
		sum := 0.0
		for _, c := range v {
			sum += c * c
		}
		for i := range v {
			v[i] = float64(float32(v[i] / math.Sqrt(sum)))
		}
	}
	return x
}

// Decays from almost none to one that forgets within a few tokens, and now and then
// everything.
func weak(x float64) float64   { return -1e-3 * x * x }
func mixed(x float64) float64  { return -0.1 * x * x * x * x }
func strong(x float64) float64 { return -3 * x * x * x * x }
func abrupt(x float64) float64 {
	if x > 1 {
		return -200
	}
	return weak(x)
}

var (
	tiny    = Options{KeyHeads: 1, ValueHeads: 2, KeyDim: 3, ValueDim: 2}
	grouped = Options{KeyHeads: 2, ValueHeads: 6, KeyDim: 16, ValueDim: 24}
)

func Test(t *testing.T) {
	treetest.Run(t, treetest.Shapes[:5], build(grouped, mixed)) // more rows are slow as float64 recurrences
	for name, decay := range map[string]func(float64) float64{"weak": weak, "mixed": mixed, "strong": strong, "abrupt": abrupt} {
		t.Run(name, func(t *testing.T) { treetest.Run(t, treetest.Shapes, build(tiny, decay)) })
	}
}

// On a GPU, as TestKernels has it; fewer shapes, since it is an emulated one.
func TestCUDA(t *testing.T) {
	on := func(o Options, decay func(float64) float64) func(*engine.Tree) optest.Case {
		return func(tree *engine.Tree) optest.Case {
			c := build(o, decay)(tree)
			c.BF16 = readingTolerance
			for i := range c.Inputs {
				c.Inputs[i].BF16 = gradientTolerance
			}
			return c
		}
	}
	treetest.Run(t, treetest.Shapes[:5], on(tiny, mixed))
	if !testing.Short() {
		treetest.Run(t, treetest.Shapes[5:6], on(grouped, abrupt))
	}
}

func TestIsolated(t *testing.T) { treetest.Isolated(t, build(grouped, mixed)) }

func TestSequences(t *testing.T) {
	treetest.Sequences(t, engine.Reference(), build(tiny, mixed), 1e-11)
	treetest.Sequences(t, engine.CPU(2), build(grouped, mixed), 5e-6)
}

// Memory grows with the longest path, not with the number of branches: a state for
// each of 500 branches would alone take 32 MiB.
func TestMemoryFollowsThePath(t *testing.T) {
	shape := treetest.Shape{Parents: []int{-1}, Lengths: []int{100}}
	for range 500 {
		shape.Parents, shape.Lengths = append(shape.Parents, 0), append(shape.Lengths, 1)
	}
	tree, tape := shape.Tree(), engine.NewTape(engine.CPU(1))
	o := Options{KeyHeads: 1, ValueHeads: 1, KeyDim: 128, ValueDim: 128}
	x, one := tape.Zeros(tree.Rows(), 128), tape.Zeros(tree.Rows(), 1)
	tape.AddTo(Forward(tape, x, x, x, one, one, tree, o))
	tape.Backward()
	if n := tape.Bytes(); n > 20<<20 {
		t.Errorf("a step holds %d MiB", n>>20)
	}
}
