// Package optest is the test every operator passes: one table of cases, each run
// as the float64 specification and in C on one and two threads.
//
// A case must hold up in all of these:
//   - the specification's gradients agree with central differences;
//   - the C results and gradients agree with the specification within the
//     tolerances that stand beside the case;
//   - the C results are the same bits for one and two threads, for contiguous and
//     strided inputs, with and without a backward pass to come, and, where rows do
//     not meet, for a row alone and among others;
//   - fresh memory holds NaN, so nothing may read what nobody wrote, nor write or
//     read beside a view;
//   - gradients are added to what is there, and not computed for frozen inputs;
//   - a step allocates nothing once a step like it has run;
//   - where it has kernels for a GPU, they agree with the specification in bf16, on an
//     emulated GPU or a real one (CUDA), in any order of threads, and hold up in the same;
//   - what the operator says of its cost holds: the backward pass reads what it saves
//     and nothing else of the forward pass, and on a device of shapes the step
//     launches the same.
package optest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"caper/engine"
)

// Case is one call of an operator.
type Case struct {
	Name   string
	Inputs []Input
	// Forward calls the operator on tensors shaped as Inputs says and returns out
	// with the results appended.
	Forward func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor
	// Tolerance bounds |got - want| / (|want| + r) for every element of a result,
	// r being the root mean square of the result. Say beside it why it suffices.
	Tolerance float64
	// BF16 is Tolerance on a GPU, where tensors are bf16 but for what NewFloat32 makes; 0 says
	// that the operator has no kernels for it. Say beside it why it suffices.
	BF16 float64
	// RowWise says that row i of a result depends on row i of those inputs that have
	// as many rows as the first one, on the other inputs, and on nothing else.
	RowWise bool
}

// Input is one tensor argument.
type Input struct {
	Name       string
	Rows, Cols int
	// Mean and Deviation of its normally distributed elements; Deviation 0 means 1.
	Mean, Deviation float64
	// Values, if set, are the elements instead, row by row.
	Values []float64
	// Tolerance of the gradient, as Case.Tolerance; 0 means the same.
	Tolerance float64
	// BF16 is that on a GPU; 0 means the same as the case's.
	BF16 float64
	// Weight says that the input is a parameter: on a GPU its gradient is float32, and added to.
	Weight bool
	// Float32 says that the input is float32 on a GPU.
	Float32 bool
	// Constant inputs get no gradient: the operator does not differentiate them.
	Constant bool
}

// Run fails the test when the case does not hold.
func Run(t *testing.T, c Case) {
	t.Helper()
	t.Run(c.Name, func(t *testing.T) {
		t.Helper()
		if err := Check(c); err != nil {
			t.Error(err)
		}
	})
	if c.BF16 > 0 {
		t.Run(c.Name+" on CUDA", func(t *testing.T) {
			t.Helper()
			dev := CUDA(t)
			if err := checkCUDA(c, dev); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check returns all that is wrong with the case.
func Check(c Case) error {
	inputs := c.draw()
	reference := newFixture(c, engine.Reference(), inputs)
	one := newFixture(c, engine.CPU(1), inputs)
	two := newFixture(c, engine.CPU(2), inputs)
	two.gap = 5

	want := reference.step(all)
	got := one.step(all)
	errs := []error{
		reference.differences(want),
		c.compare(got, want),
		same("two threads and strided inputs", two.step(all), got),
		two.beside(),
		same("the tape's second step", one.step(all), got),
		one.inference(got),
		one.added(got),
		one.unseeded(),
		one.frozen(got),
		two.allocations(),
		c.cost(inputs, got),
	}
	if c.RowWise {
		errs = append(errs, one.rowsAlone(got))
	}
	if len(want.out) > 1 {
		for j := range want.out {
			errs = append(errs, c.compare(one.step(j), reference.step(j)))
		}
	}
	return errors.Join(errs...)
}

// draw returns the elements of the inputs, rounded to float32 so that both devices
// start from the same numbers.
func (c Case) draw() [][]float64 {
	r := rand.New(rand.NewPCG(1, uint64(len(c.Name))))
	drawn := make([][]float64, len(c.Inputs))
	for i, in := range c.Inputs {
		x := make([]float64, in.Rows*in.Cols)
		deviation := in.Deviation
		if deviation == 0 {
			deviation = 1
		}
		for e := range x {
			x[e] = float64(float32(in.Mean + deviation*r.NormFloat64()))
		}
		if in.Values != nil {
			copy(x, in.Values)
		}
		drawn[i] = x
	}
	return drawn
}

// result is what one step gave: outputs, and gradients of the inputs (nil where
// there is none), element by element.
type result struct {
	out, grad [][]float64
}

// compare judges the results of the C code, or of kernels on a GPU, by the specification's.
func (c Case) compare(got, want result) error { return c.compareTo(got, want, false) }

func (c Case) compareTo(got, want result, onGPU bool) error {
	general := c.Tolerance
	if onGPU {
		general = c.BF16
	}
	var errs []error
	for j := range want.out {
		errs = append(errs, near(fmt.Sprintf("result %d", j), got.out[j], want.out[j], general))
	}
	for i, in := range c.Inputs {
		if in.Constant {
			continue
		}
		tolerance := in.Tolerance
		if onGPU {
			tolerance = in.BF16
		}
		if tolerance == 0 {
			tolerance = general
		}
		expected := want.grad[i]
		if onGPU && in.Weight && expected == nil { // a parameter has a gradient before anybody adds to it
			expected = make([]float64, in.Rows*in.Cols)
		}
		errs = append(errs, near("gradient of "+in.Name, got.grad[i], expected, tolerance))
	}
	return errors.Join(errs...)
}
