package swiglu

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/swiglu/op.cu",
	Registers: map[string]int{"swiglu_forward": 32, "swiglu_backward": 48},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		large := operator(1, 9)
		large.Inputs[0].Values = []float64{-1e4, -100, -60, -20, 0, 20, 60, 100, 1e4}
		proveKernels(d, large, 0)
		for _, shape := range [][2]int{{1, 1}, {3, 15}, {33, 17}, {5, 264}, {7, 600}} {
			for _, accumulate := range []int32{0, 1} {
				proveKernels(d, operator(shape[0], shape[1]), accumulate)
			}
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, c optest.Case, accumulate int32) {
	d.Helper()
	e := c.Example()
	rows, cols := c.Inputs[0].Rows, c.Inputs[0].Cols
	const rounding = 1.0 / 256 // one, to bf16
	launch := emulator.Launch{Grid: [3]int{rows, (cols + 255) / 256}, Block: [3]int{32}}
	gate, up, y, dy := d.Matrix(rows, cols, e.In[0]), d.Matrix(rows, cols, e.In[1]), d.Matrix(rows, cols, nil), d.Matrix(rows, cols, e.Seeds[0])
	stride, n := int64(gate.Stride), int32(cols)
	d.Launch("swiglu_forward", launch, gate.Memory, up.Memory, y.Memory, n, stride, stride, stride)
	d.CheckMatrix(c.Name+": y", y, e.Out[0], rounding)

	dgate, dup := d.GradientMatrix(rows, cols, accumulate), d.GradientMatrix(rows, cols, 1-accumulate)
	d.Launch("swiglu_backward", launch, gate.Memory, up.Memory, dy.Memory, dgate.Memory, dup.Memory, n,
		stride, stride, stride, stride, stride, accumulate, 1-accumulate)
	d.CheckGradientMatrix(c.Name+": dgate", dgate, accumulate, e.Gradients[0], rounding)
	d.CheckGradientMatrix(c.Name+": dup", dup, 1-accumulate, e.Gradients[1], rounding)
}
