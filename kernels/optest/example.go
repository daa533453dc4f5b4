package optest

import (
	"math/rand/v2"
	"unsafe"

	"caper/cuda/emulator"
	"caper/engine"
)

// Example is a case in numbers that bf16 holds, for tests that launch kernels themselves:
// what goes in, and what the specification makes of it. All are element by element, row by row.
type Example struct {
	In        [][]float64 // by input
	Out       [][]float64 // by result
	Seeds     [][]float64 // the results' gradients
	Gradients [][]float64 // the inputs' gradients, nil of constant ones
}

// Example runs the specification.
func (c Case) Example() Example {
	r := rand.New(rand.NewPCG(3, uint64(len(c.Inputs[0].Name))))
	tape := engine.NewTape(engine.Reference())
	var e Example
	var in []*engine.Tensor
	for i, values := range c.draw() {
		for j, v := range values {
			values[j] = RoundBF16(v)
		}
		x := tape.New(c.Inputs[i].Rows, c.Inputs[i].Cols)
		fill(x, values)
		in, e.In = append(in, x), append(e.In, values)
	}
	for _, y := range c.Forward(tape, in, nil) {
		seeds := Normal(r, y.Rows*y.Cols, 1, 0)
		fill(tape.AddTo(y), seeds)
		e.Out, e.Seeds = append(e.Out, elements(y)), append(e.Seeds, seeds)
	}
	tape.Backward()
	for i, x := range in {
		var gradient []float64
		if g := tape.Gradient(x); g != nil && !c.Inputs[i].Constant {
			gradient = elements(g)
		}
		e.Gradients = append(e.Gradients, gradient)
	}
	return e
}

// Normal returns normally distributed numbers that bf16 holds.
func Normal(r *rand.Rand, n int, deviation, mean float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = RoundBF16(mean + deviation*r.NormFloat64())
	}
	return x
}

// Copy returns memory that holds these int32, float64 or structures.
func Copy[T any](d *EmulatedGPU, values []T) *emulator.Memory {
	d.Helper()
	var element T
	m := d.alloc(len(values), unsafe.Sizeof(element))
	copy(emulator.Of[T](m), values)
	return m
}

// before is what gradients hold that kernels add to.
const before = 0.5

// GradientMatrix returns the matrix of a gradient that a kernel stores, which is NaN, or, with
// accumulate 1, adds to.
func (d *EmulatedGPU) GradientMatrix(rows, cols int, accumulate int32) Matrix {
	d.Helper()
	if accumulate == 0 {
		return d.Matrix(rows, cols, nil)
	}
	return d.Matrix(rows, cols, added(make([]float64, rows*cols)))
}

// CheckGradientMatrix compares what a kernel stored in, or added to, a GradientMatrix.
func (d *EmulatedGPU) CheckGradientMatrix(what string, m Matrix, accumulate int32, want []float64, tolerance float64) {
	d.Helper()
	if accumulate != 0 {
		want = added(want)
	}
	d.CheckMatrix(what, m, want, tolerance)
}

// WeightGradient returns memory for the float32 gradient of n weights, to which kernels add.
func (d *EmulatedGPU) WeightGradient(n int) *emulator.Memory {
	d.Helper()
	return d.Float32(added(make([]float64, n)))
}

// CheckWeightGradient compares what kernels added to a WeightGradient.
func (d *EmulatedGPU) CheckWeightGradient(what string, m *emulator.Memory, want []float64, tolerance float64) {
	d.Helper()
	d.CheckFloat32(what, m, added(want), tolerance)
}

// CheckFloat64 compares a result in float64.
func (d *EmulatedGPU) CheckFloat64(what string, m *emulator.Memory, want []float64, tolerance float64) {
	d.Helper()
	d.check(what, emulator.Of[float64](m), want, tolerance)
}

func added(x []float64) []float64 {
	sum := make([]float64, len(x))
	for i, v := range x {
		sum[i] = before + v
	}
	return sum
}
