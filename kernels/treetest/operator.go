package treetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"caper/engine"
)

// Input is one input of the operator under test. Rows 0 means one row per token.
// Fill turns a standard normal number into an element; nil keeps it.
type Input struct {
	Name       string
	Rows, Cols int
	Fill       func(normal float64) float64
}

// Operator is what is tested. Run calls it and fills in its outputs.
type Operator struct {
	Inputs  []Input
	Outputs int
	Run     func(t *engine.Tape, in, out []*engine.Tensor, tree *engine.Tree)
}

// pad is how many columns the storage of an input has left and right of it: inputs
// are views with gaps between their rows.
const pad = 3

// values holds the content of every input for a tree, row by row.
type values [][]float64

func (op Operator) draw(tree *engine.Tree, seed uint64) values {
	rng := rand.New(rand.NewPCG(seed, 7))
	v := make(values, len(op.Inputs))
	for i, in := range op.Inputs {
		rows := in.Rows
		if rows == 0 {
			rows = tree.Rows()
		}
		v[i] = make([]float64, rows*in.Cols)
		for j := range v[i] {
			x := rng.NormFloat64()
			if in.Fill != nil {
				x = in.Fill(x)
			}
			v[i][j] = float64(float32(x)) // both devices see the same number
		}
	}
	return v
}

// run holds the outcome of one forward and backward pass.
type run struct {
	outputs, gradients [][]float64
	loss               float64
}

// evaluate runs the operator on dev; the loss is the sum of the outputs weighted
// by weights(output, row, column).
func (op Operator) evaluate(dev engine.Device, tree *engine.Tree, v values, weights func(k, i, j int) float64) run {
	t := engine.NewTape(dev)
	t.Poison = true
	params := make([]*engine.Param, len(v))
	in := make([]*engine.Tensor, len(v))
	for i, spec := range op.Inputs {
		rows := len(v[i]) / spec.Cols
		params[i] = engine.NewParam(dev, spec.Name, rows, spec.Cols+2*pad)
		in[i] = t.Columns(params[i].Tensor, pad, spec.Cols)
		if spec.Rows != 0 { // weights are parameters as they are, never views
			params[i] = engine.NewParam(dev, spec.Name, rows, spec.Cols)
			in[i] = params[i].Tensor
		}
		for j, x := range v[i] {
			in[i].Set(j/spec.Cols, j%spec.Cols, x)
		}
	}
	var r run
	outs := make([]*engine.Tensor, op.Outputs)
	op.Run(t, in, outs, tree)
	for k, out := range outs {
		r.outputs = append(r.outputs, contents(out))
		g := t.AddTo(out)
		for i := range out.Rows {
			for j := range out.Cols {
				w := weights(k, i, j)
				r.loss += w * out.At(i, j)
				g.Set(i, j, w)
			}
		}
	}
	t.Backward()
	for i := range in {
		r.gradients = append(r.gradients, contents(t.Gradient(in[i])))
	}
	return r
}

func contents(x *engine.Tensor) []float64 {
	c := make([]float64, 0, x.Rows*x.Cols)
	for i := range x.Rows {
		for j := range x.Cols {
			c = append(c, x.At(i, j))
		}
	}
	return c
}

// weight is a fixed arbitrary loss weight of an output element.
func weight(k, i, j int) float64 {
	return float64(float32(math.Sin(float64(1+13*k+7*i+3*j) * 1.7)))
}

// Differences compares the gradients of the specification with central
// differences of its output.
func (op Operator) Differences(t *testing.T, shapes []Shape) {
	for n, shape := range shapes {
		tree := shape.Tree()
		v := op.draw(tree, uint64(n))
		got := op.evaluate(engine.Reference(), tree, v, weight).gradients
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		for i := range v {
			for range min(len(v[i]), 12) {
				j := rng.IntN(len(v[i]))
				const h = 1e-5
				at := v[i][j]
				v[i][j] = at + h
				up := op.evaluate(engine.Reference(), tree, v, weight).loss
				v[i][j] = at - h
				down := op.evaluate(engine.Reference(), tree, v, weight).loss
				v[i][j] = at
				// Rounding leaves 1e-16/h of the loss, the third derivative h^2.
				if want := (up - down) / (2 * h); math.Abs(got[i][j]-want) > 1e-7*(1+math.Abs(want)) {
					t.Errorf("%s: gradient of %s[%d] is %g, difference quotient %g", shape.Name, op.Inputs[i].Name, j, got[i][j], want)
				}
			}
		}
	}
}

// CPU compares outputs and gradients of the CPU device with those of the
// specification, as relative L2 distance per tensor, and asks for the same bits
// from one thread and two.
func (op Operator) CPU(t *testing.T, shapes []Shape, outputs, gradients float64) {
	one, two := engine.CPU(1), engine.CPU(2)
	for n, shape := range shapes {
		tree := shape.Tree()
		v := op.draw(tree, uint64(n))
		want := op.evaluate(engine.Reference(), tree, v, weight)
		got := op.evaluate(one, tree, v, weight)
		for k := range want.outputs {
			Close(t, fmt.Sprintf("%s: output %d", shape.Name, k), got.outputs[k], want.outputs[k], outputs)
		}
		for i, in := range op.Inputs {
			Close(t, fmt.Sprintf("%s: gradient of %s", shape.Name, in.Name), got.gradients[i], want.gradients[i], gradients)
		}
		again := op.evaluate(two, tree, v, weight)
		if !slices.EqualFunc(got.outputs, again.outputs, slices.Equal) {
			t.Errorf("%s: outputs differ between one thread and two", shape.Name)
		}
		if !slices.EqualFunc(got.gradients, again.gradients, slices.Equal) {
			t.Errorf("%s: gradients differ between one thread and two", shape.Name)
		}
	}
}

// Close checks that got is within tolerance of want, relative to the length of
// want.
func Close(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	diff, norm := 0.0, 0.0
	for i := range want {
		diff += (got[i] - want[i]) * (got[i] - want[i])
		norm += want[i] * want[i]
	}
	// What is left after cancellation is judged against elements of 0.1.
	if relative := math.Sqrt(diff) / (math.Sqrt(norm) + 0.1*math.Sqrt(float64(len(want)))); !(relative <= tolerance) {
		t.Errorf("%s is off by %.2g, relative, tolerance %.2g", what, relative, tolerance)
	}
}

// Sequences compares a tree with the sequences packed in it, each run alone: equal
// outputs, and gradients that are sums over the sequences.
func (op Operator) Sequences(t *testing.T, dev engine.Device, shapes []Shape, tolerance float64) {
	for n, shape := range shapes {
		tree := shape.Tree()
		v := op.draw(tree, uint64(n))
		all := paths(tree)
		uses := make([]float64, tree.Rows())
		for _, rows := range all {
			for _, r := range rows {
				uses[r]++
			}
		}
		packed := op.evaluate(dev, tree, v, func(k, i, j int) float64 { return uses[i] * weight(k, i, j) })
		sums := make([][]float64, len(v))
		for i := range sums {
			sums[i] = make([]float64, len(v[i]))
		}
		for _, rows := range all {
			alone := op.evaluate(dev, sequence(len(rows)), op.gather(v, rows),
				func(k, i, j int) float64 { return weight(k, int(rows[i]), j) })
			for k, out := range packed.outputs {
				cols := len(out) / tree.Rows()
				Close(t, fmt.Sprintf("%s: output %d of a path", shape.Name, k), gatherRows(out, cols, rows), alone.outputs[k], tolerance)
			}
			for i, in := range op.Inputs {
				for p, x := range alone.gradients[i] {
					if in.Rows == 0 {
						p = int(rows[p/in.Cols])*in.Cols + p%in.Cols
					}
					sums[i][p] += x
				}
			}
		}
		for i, in := range op.Inputs {
			Close(t, fmt.Sprintf("%s: gradient of %s", shape.Name, in.Name), packed.gradients[i], sums[i], tolerance)
		}
	}
}

func sequence(n int) *engine.Tree {
	return Shape{Parents: []int{-1}, Lengths: []int{n}}.Tree()
}

// gather cuts the inputs of the tokens in rows out of v; weights are shared.
func (op Operator) gather(v values, rows []int32) values {
	g := slices.Clone(v)
	for i, in := range op.Inputs {
		if in.Rows == 0 {
			g[i] = gatherRows(v[i], in.Cols, rows)
		}
	}
	return g
}

func gatherRows(x []float64, cols int, rows []int32) []float64 {
	var g []float64
	for _, r := range rows {
		g = append(g, x[int(r)*cols:int(r+1)*cols]...)
	}
	return g
}

// Allocations returns the Go allocations of one step, forward and backward, once
// earlier steps have sized the tape.
func (op Operator) Allocations(shape Shape) float64 {
	dev, tree := engine.CPU(2), shape.Tree()
	t := engine.NewTape(dev)
	v := op.draw(tree, 1)
	in := make([]*engine.Tensor, len(v))
	for i, spec := range op.Inputs {
		in[i] = engine.NewParam(dev, spec.Name, len(v[i])/spec.Cols, spec.Cols).Tensor
		for j, x := range v[i] {
			in[i].Set(j/spec.Cols, j%spec.Cols, x)
		}
	}
	outs := make([]*engine.Tensor, op.Outputs)
	return testing.AllocsPerRun(10, func() {
		op.Run(t, in, outs, tree)
		for _, out := range outs {
			t.AddTo(out)
		}
		t.Backward()
		t.Reset()
	})
}
