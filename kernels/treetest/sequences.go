package treetest

import (
	"fmt"
	"math"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

// Sequences compares every tree with the sequences packed in it, one per segment and
// each run alone: results must be equal, and gradients sums over the sequences, both
// within tolerance of relative L2 distance. An input with as many rows as the tree
// belongs to the tokens, any other is shared.
func Sequences(t *testing.T, dev engine.Device, build func(*engine.Tree) optest.Case, tolerance float64) {
	t.Helper()
	for _, s := range Shapes {
		compare(t, dev, build, s, tolerance)
	}
}

func compare(t *testing.T, dev engine.Device, build func(*engine.Tree) optest.Case, s Shape, tolerance float64) {
	tree := s.Tree()
	whole := call{Case: build(tree), uses: make([]float64, tree.Rows())}
	whole.draw()
	var paths [][]int32
	for g, start := range tree.Start {
		path := tree.Path(nil, start+tree.Len[g]-1)
		paths = append(paths, path)
		for _, r := range path {
			whole.uses[r]++
		}
	}
	whole.run(dev)
	sums := make([][]float64, len(whole.Inputs))
	for i := range sums {
		sums[i] = make([]float64, len(whole.values[i]))
	}
	for g, path := range paths {
		alone := call{Case: build(Shape{Parents: []int{-1}, Lengths: []int{len(path)}}.Tree()), rows: path}
		for i, in := range whole.Inputs {
			v := whole.values[i]
			if in.Rows == tree.Rows() {
				v = gather(v, in.Cols, path)
			}
			alone.values = append(alone.values, v)
		}
		alone.run(dev)
		for k, out := range whole.outputs {
			near(t, fmt.Sprintf("%s: result %d of the path to segment %d", s.Name, k, g),
				alone.outputs[k], gather(out, len(out)/tree.Rows(), path), tolerance)
		}
		for i, in := range whole.Inputs {
			for e, x := range alone.gradients[i] {
				if in.Rows == tree.Rows() {
					e = int(path[e/in.Cols])*in.Cols + e%in.Cols
				}
				sums[i][e] += x
			}
		}
	}
	for i, in := range whole.Inputs {
		near(t, fmt.Sprintf("%s: gradient of %s", s.Name, in.Name), whole.gradients[i], sums[i], tolerance)
	}
}

// call is one forward and backward pass of a case.
type call struct {
	optest.Case
	values             [][]float64
	uses               []float64 // of a tree: how many paths each row is on
	rows               []int32   // of a path: its rows in the tree
	outputs, gradients [][]float64
}

func (c *call) draw() {
	for _, in := range c.Inputs {
		v := in.Values
		if v == nil {
			v = Draw(in.Name, in.Rows*in.Cols, func(x float64) float64 { return x })
		}
		c.values = append(c.values, v)
	}
}

func (c *call) run(dev engine.Device) {
	t := engine.NewTape(dev)
	var in []*engine.Tensor
	for i, v := range c.values {
		x := t.New(len(v)/c.Inputs[i].Cols, c.Inputs[i].Cols)
		for e := range v {
			x.Set(e/x.Cols, e%x.Cols, v[e])
		}
		in = append(in, x)
	}
	for k, y := range c.Forward(t, in, nil) {
		c.outputs = append(c.outputs, elements(y))
		g := t.AddTo(y)
		for i := range y.Rows {
			for j := range y.Cols {
				g.Set(i, j, c.seed(k, i, j))
			}
		}
	}
	t.Backward()
	for _, x := range in {
		c.gradients = append(c.gradients, elements(t.Gradient(x)))
	}
}

// seed is the gradient of an output's element: that of the row in the tree, once per
// path that uses it.
func (c *call) seed(k, row, col int) float64 {
	uses := 1.0
	if c.rows != nil {
		row = int(c.rows[row])
	} else {
		uses = c.uses[row]
	}
	return uses * float64(float32(math.Sin(1.7*float64(1+13*k+7*row+3*col))))
}

func gather(x []float64, cols int, rows []int32) []float64 {
	var g []float64
	for _, r := range rows {
		g = append(g, x[int(r)*cols:int(r+1)*cols]...)
	}
	return g
}

func elements(x *engine.Tensor) []float64 {
	s := make([]float64, 0, x.Rows*x.Cols)
	for i := range x.Rows {
		for j := range x.Cols {
			s = append(s, x.At(i, j))
		}
	}
	return s
}

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	diff, norm := 0.0, 0.0
	for i := range want {
		diff += (got[i] - want[i]) * (got[i] - want[i])
		norm += want[i] * want[i]
	}
	// What is left after cancellation is judged against elements of 0.1.
	scale := math.Sqrt(norm) + 0.1*math.Sqrt(float64(len(want)))
	if !(math.Sqrt(diff) <= tolerance*scale) {
		t.Errorf("%s is off by %.2g, tolerance %.2g", what, math.Sqrt(diff)/scale, tolerance)
	}
}
