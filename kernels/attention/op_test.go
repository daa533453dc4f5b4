package attention

import (
	"math"
	"slices"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
	"caper/kernels/treetest"
)

// build makes cases with a gate where the options have a place for it.
func build(o Options) func(*engine.Tree) optest.Case {
	return func(tree *engine.Tree) optest.Case {
		n := tree.Rows()
		c := optest.Case{
			Inputs: []optest.Input{
				{Name: "q", Rows: n, Cols: o.Heads * o.Dim},
				{Name: "k", Rows: n, Cols: o.KVHeads * o.Dim},
				{Name: "v", Rows: n, Cols: o.KVHeads * o.Dim},
			},
			Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
				var gate *engine.Tensor
				if o.GateStride > 0 {
					gate = in[3]
				}
				return append(out, Forward(t, in[0], in[1], in[2], gate, tree, o))
			},
			// Dot products of Dim terms in an exponential, sums over up to 193 keys.
			Tolerance: 5e-6,
		}
		if o.Dim%8 == 0 {
			c.BF16 = 8 * rounding
			// A row that sees itself alone has no choice, and the gradient of its query is a
			// difference of equal numbers, of which the output was rounded.
			c.Inputs[0].BF16 = 24 * rounding
		}
		if o.GateStride > 0 {
			c.Inputs = append(c.Inputs, optest.Input{Name: "gate", Rows: n, Cols: o.Heads * o.GateStride})
		}
		return c
	}
}

var (
	plain   = Options{Heads: 2, KVHeads: 2, Dim: 4}
	gated   = Options{Heads: 4, KVHeads: 2, Dim: 3, GateStride: 6, GateOffset: 3}
	grouped = Options{Heads: 6, KVHeads: 2, Dim: 20, GateStride: 40, GateOffset: 20}
	onCards = Options{Heads: 2, KVHeads: 1, Dim: 8, GateStride: 16, GateOffset: 8} // heads begin at multiples of 16 bytes
	full    = Options{Heads: 2, KVHeads: 1, Dim: 64}                               // which Hopper computes otherwise
)

func Test(t *testing.T) {
	// The gradients of a lone token's query and key are differences of equal numbers:
	// no relative tolerance fits them.
	several := treetest.Shapes[1:]
	treetest.Run(t, several, build(plain))
	treetest.Run(t, several, build(gated))
}

// On a GPU, too: cuda_test.go proves the kernels over more trees and heads.
func TestOnCards(t *testing.T) {
	treetest.Run(t, []treetest.Shape{shapeOf("ladder")}, build(full))
	if !testing.Short() {
		treetest.Run(t, []treetest.Shape{shapeOf("prompt")}, build(onCards))
	}
}

func shapeOf(name string) treetest.Shape {
	return treetest.Shapes[slices.IndexFunc(treetest.Shapes, func(s treetest.Shape) bool { return s.Name == name })]
}

// A lone token sees itself alone.
func TestLoneToken(t *testing.T) {
	tape := engine.NewTape(engine.CPU(1))
	tree := treetest.Shapes[0].Tree()
	q, k, v := tape.New(1, 8), tape.New(1, 8), tape.New(1, 8)
	for c := range 8 {
		q.Set(0, c, float64(c))
		k.Set(0, c, 3)
		v.Set(0, c, float64(c*c))
	}
	y := Forward(tape, q, k, v, nil, tree, plain)
	tape.Seed(y, 0, 1)
	tape.Backward()
	for c := range 8 {
		if y.At(0, c) != v.At(0, c) {
			t.Errorf("column %d is %g, want the value %g", c, y.At(0, c), v.At(0, c))
		}
		if g := tape.Gradient(q).At(0, c); math.Abs(g) > 1e-6 {
			t.Errorf("gradient %g of a query that has no choice", g)
		}
	}
}

func TestIsolated(t *testing.T) { treetest.Isolated(t, build(grouped)) }

func TestSequences(t *testing.T) {
	treetest.Sequences(t, engine.Reference(), build(gated), 1e-12)
	treetest.Sequences(t, engine.CPU(2), build(grouped), 2e-6)
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

// On a GPU a row of a tree has the bits of its sequence alone, on both paths.
func TestBitsDoNotDependOnTrees(t *testing.T) {
	dev := optest.CUDA(t)
	for _, o := range []Options{full, onCards} {
		tree := shapeOf("prompt").Tree()
		row := int32(tree.Rows() - 1)
		path := tree.Path(nil, row)
		alone := treetest.Shape{Parents: []int{-1}, Lengths: []int{len(path)}}.Tree()
		forward := func(tree *engine.Tree, rows []int32) []float32 {
			tape := engine.NewTape(dev)
			defer tape.Close()
			draw := func(cols int) *engine.Tensor {
				x := tape.New(tree.Rows(), cols)
				values := make([]float32, x.Rows*cols)
				for i, r := range rows {
					rng := engine.Random(1, "test", uint64(r), uint64(cols))
					for c := range cols {
						values[i*cols+c] = float32(rng.NormFloat64())
					}
				}
				x.Write(values)
				return x
			}
			kv := draw(o.KVHeads * o.Dim)
			y := Forward(tape, draw(o.Heads*o.Dim), kv, kv, nil, tree, o)
			out := make([]float32, y.Rows*y.Cols)
			y.Read(out)
			return out[(len(rows)-1)*y.Cols:]
		}
		all := make([]int32, tree.Rows())
		for i := range all {
			all[i] = int32(i)
		}
		if got, want := forward(tree, all), forward(alone, path); !slices.Equal(got, want) {
			t.Errorf("%+v: a row is %v in a tree, %v in its sequence alone", o, got, want)
		}
	}
}
