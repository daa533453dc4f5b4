package optest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"caper/engine"
)

// all seeds the gradient of every output; a number seeds that output's alone, and
// none seeds nothing.
const (
	all  = -1
	none = -2
)

// fixture runs a case on one device.
type fixture struct {
	c       Case
	tape    *engine.Tape
	inputs  [][]float64
	gap     int             // columns of NaN on either side of each input
	preset  float64         // the inputs' gradients before the backward pass
	weights []*engine.Param // by input: on a GPU, the parameter to use
	still   []*engine.Param // by input: the frozen tensor to use instead, or nil
	rounded bool            // seeds are bf16, where results are
	before  func()          // runs before the backward pass, if set
	base    []*engine.Tensor
	in      []*engine.Tensor
	out     []*engine.Tensor
}

func newFixture(c Case, dev engine.Device, inputs [][]float64) *fixture {
	f := &fixture{c: c, tape: engine.NewTape(dev), inputs: inputs, still: make([]*engine.Param, len(inputs)), weights: make([]*engine.Param, len(inputs))}
	f.rounded = f.tape.GPU() != nil
	f.tape.Poison = true
	return f
}

// run plays one step without looking at the results.
func (f *fixture) run(seeded int) {
	f.tape.Reset()
	f.base, f.in, f.out = f.base[:0], f.in[:0], f.out[:0]
	for i, shape := range f.c.Inputs {
		x := f.newInput(i)
		f.base = append(f.base, x)
		if f.gap > 0 && x.Cols > shape.Cols { // a whole tensor may get a fresh gradient, a view never does
			x = f.tape.Columns(x, f.gap, shape.Cols)
		}
		if f.still[i] != nil {
			x = f.still[i].Tensor
		}
		fill(x, f.inputs[i])
		f.in = append(f.in, x)
	}
	f.out = f.c.Forward(f.tape, f.in, f.out)
	if f.tape.Inference {
		return
	}
	if f.preset != 0 {
		for i := range f.in {
			if g := f.tape.AddTo(f.in[i]); g != nil {
				fillWith(g, f.preset)
			}
		}
	}
	for j, y := range f.out {
		if seeded == all || seeded == j {
			f.seed(f.tape.AddTo(y), j)
		}
	}
	if f.before != nil {
		f.before()
	}
	f.tape.Backward()
}

// newInput returns memory for input i: with columns on either side, unless it is a parameter
// on a GPU.
func (f *fixture) newInput(i int) *engine.Tensor {
	shape := f.c.Inputs[i]
	switch {
	case f.tape.GPU() != nil && shape.Weight:
		if f.weights[i] == nil {
			f.weights[i] = newWeight(f.tape.Device(), shape)
		}
		f.weights[i].ZeroGrad()
		return f.weights[i].Tensor
	case shape.Float32:
		return f.tape.NewFloat32(shape.Rows, shape.Cols+2*f.gap)
	}
	return f.tape.New(shape.Rows, shape.Cols+2*f.gap)
}

func newWeight(dev engine.Device, shape Input) *engine.Param {
	if shape.Float32 {
		return engine.NewFloat32Param(dev, shape.Name, shape.Rows, shape.Cols)
	}
	return engine.NewParam(dev, shape.Name, shape.Rows, shape.Cols)
}

// step plays one step and returns what came out.
func (f *fixture) step(seeded int) result {
	f.run(seeded)
	var r result
	for _, y := range f.out {
		r.out = append(r.out, elements(y))
	}
	for _, x := range f.in {
		var g []float64
		if grad := f.tape.Gradient(x); grad != nil && !f.tape.Inference {
			g = elements(grad)
		}
		r.grad = append(r.grad, g)
	}
	return r
}

// beside reports whether the last step wrote beside the inputs or their gradients.
func (f *fixture) beside() error {
	for i, base := range f.base {
		shape, grad := f.c.Inputs[i], f.tape.Gradient(base)
		for r := range base.Rows {
			if base.Cols == shape.Cols {
				break
			}
			for c := range base.Cols {
				if c >= f.gap && c < f.gap+shape.Cols {
					continue
				}
				if !math.IsNaN(base.At(r, c)) {
					return fmt.Errorf("%s: wrote beside the view at row %d", shape.Name, r)
				}
				if grad != nil && grad.At(r, c) != 0 {
					return fmt.Errorf("%s: wrote beside the view's gradient at row %d", shape.Name, r)
				}
			}
		}
	}
	return nil
}

// inference checks that a tape which does not remember operators gives the same.
func (f *fixture) inference(want result) error {
	f.tape.Inference = true
	defer func() { f.tape.Inference = false }()
	return same("inference", result{out: f.step(none).out}, result{out: want.out})
}

// added checks that gradients are added to what is there.
func (f *fixture) added(want result) error {
	f.preset = 0.5
	defer func() { f.preset = 0 }()
	got := f.step(all)
	var errs []error
	for i, in := range f.c.Inputs {
		if in.Constant {
			continue
		}
		sum := make([]float64, len(want.grad[i]))
		for e, g := range want.grad[i] {
			sum[e] = f.preset + g
		}
		// The sum is the same up to where it is rounded to float32, or as both addends to bf16.
		tolerance := 1e-5
		if f.rounded && !in.Weight {
			tolerance = 1.0 / 128
		}
		errs = append(errs, near("gradient of "+in.Name+" added to 0.5", got.grad[i], sum, tolerance))
	}
	return errors.Join(errs...)
}

// unseeded checks that a result nobody used sends no gradient back.
func (f *fixture) unseeded() error {
	for i, g := range f.step(none).grad {
		for _, x := range g {
			if x != 0 {
				return fmt.Errorf("%s: a gradient although no result has one", f.c.Inputs[i].Name)
			}
		}
	}
	return nil
}

// frozen freezes the inputs one after the other.
func (f *fixture) frozen(want result) error {
	for i, shape := range f.c.Inputs {
		f.still[i] = newStill(f.tape.Device(), shape)
		got := f.step(all)
		f.still[i] = nil
		if got.grad[i] != nil {
			return fmt.Errorf("%s: a gradient although it is frozen", shape.Name)
		}
		expected := result{out: want.out, grad: append([][]float64(nil), want.grad...)}
		expected.grad[i] = nil
		if err := same(shape.Name+" frozen", got, expected); err != nil {
			return err
		}
	}
	return nil
}

func newStill(dev engine.Device, shape Input) *engine.Param {
	if shape.Float32 {
		return engine.NewFrozenFloat32(dev, shape.Name, shape.Rows, shape.Cols)
	}
	return engine.NewFrozen(dev, shape.Name, shape.Rows, shape.Cols)
}

// allocations checks that a step allocates nothing once one like it has run.
func (f *fixture) allocations() error {
	if n := testing.AllocsPerRun(5, func() { f.run(all) }); n > 0 {
		return fmt.Errorf("a step allocates %g times, want 0", n)
	}
	return nil
}

// rowsAlone checks that the outputs of a row do not change when it is alone.
func (f *fixture) rowsAlone(want result) error {
	rows := f.c.Inputs[0].Rows
	for r := 0; r < rows; r += 1 + rows/7 {
		c := f.c
		c.Inputs = append([]Input(nil), f.c.Inputs...)
		inputs := append([][]float64(nil), f.inputs...)
		for i, in := range c.Inputs {
			if in.Rows == rows {
				c.Inputs[i].Rows = 1
				inputs[i] = inputs[i][r*in.Cols : (r+1)*in.Cols]
			}
		}
		alone := newFixture(c, f.tape.Device(), inputs)
		alone.tape.Inference = true
		expected := result{}
		for _, y := range want.out {
			cols := len(y) / rows
			expected.out = append(expected.out, y[r*cols:(r+1)*cols])
		}
		if err := same(fmt.Sprintf("row %d alone", r), result{out: alone.step(none).out}, expected); err != nil {
			return err
		}
	}
	return nil
}

// differences compares the specification's gradients with central differences of
// the sum of its seeded outputs, at a dozen elements of each input.
func (f *fixture) differences(want result) error {
	f.tape.Inference = true
	defer func() { f.tape.Inference = false }()
	r := rand.New(rand.NewPCG(2, 3))
	for i, in := range f.c.Inputs {
		if in.Constant || len(f.inputs[i]) == 0 {
			continue
		}
		if want.grad[i] == nil {
			return fmt.Errorf("specification: no gradient of %s", in.Name)
		}
		scale := rms(want.grad[i])
		for range 12 {
			e := r.IntN(len(f.inputs[i]))
			x := f.inputs[i][e]
			h := 1e-5 * (1 + math.Abs(x))
			f.inputs[i][e] = x + h
			above := f.loss()
			f.inputs[i][e] = x - h
			below := f.loss()
			f.inputs[i][e] = x
			slope, got := (above-below)/(2*h), want.grad[i][e]
			// The difference is good to h^2 and to the sum's rounding over h: 1e-7 here.
			if !(math.Abs(got-slope) <= 1e-6*(math.Abs(slope)+scale)+1e-9) {
				return fmt.Errorf("specification: gradient of %s at element %d is %g, a central difference gives %g", in.Name, e, got, slope)
			}
		}
	}
	return nil
}

// loss is the sum of all outputs weighted by their seeds.
func (f *fixture) loss() float64 {
	f.run(none)
	var sum float64
	for j, y := range f.out {
		for r := range y.Rows {
			for c := range y.Cols {
				sum += seedAt(j, r*y.Cols+c) * y.At(r, c)
			}
		}
	}
	return sum
}

// seedAt is the gradient of element e of output j: any numbers of both signs that
// are exact in float32 and do not repeat soon.
func seedAt(j, e int) float64 {
	h := uint32(e+1)*2654435761 + uint32(j)*40503
	return float64(int32(h>>16)-1<<15) / (1 << 14)
}

// seed sets the gradient of result j.
func (f *fixture) seed(g *engine.Tensor, j int) {
	setEach(g, func(e int) float64 {
		if f.rounded {
			return RoundBF16(seedAt(j, e))
		}
		return seedAt(j, e)
	})
}

func fill(x *engine.Tensor, values []float64) {
	setEach(x, func(e int) float64 { return values[e] })
}

func fillWith(x *engine.Tensor, value float64) {
	setEach(x, func(int) float64 { return value })
}

// setEach sets element e of x, counted row by row, to value(e): on a GPU all at once.
func setEach(x *engine.Tensor, value func(e int) float64) {
	if x.Address() != 0 {
		all := make([]float32, x.Rows*x.Cols)
		for e := range all {
			all[e] = float32(value(e))
		}
		x.Write(all)
		return
	}
	for r := range x.Rows {
		for c := range x.Cols {
			x.Set(r, c, value(r*x.Cols+c))
		}
	}
}

func elements(x *engine.Tensor) []float64 { return x.Values() }
