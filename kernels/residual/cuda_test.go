package residual

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/residual/op.cu",
	Registers: map[string]int{"residual_forward": 32, "residual_backward": 40},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, shape := range [][2]int{{1, 1}, {3, 15}, {33, 17}, {5, 264}, {7, 600}} {
			for _, accumulate := range []int32{0, 1} {
				proveKernels(d, shape[0], shape[1], accumulate)
			}
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, rows, cols int, accumulate int32) {
	d.Helper()
	c := operator(rows, cols)
	e := c.Example()
	const rounding = 1.0 / 256 // one, to bf16
	launch := emulator.Launch{Grid: [3]int{rows, (cols + 255) / 256}, Block: [3]int{32}}
	x, y, sum, dsum := d.Matrix(rows, cols, e.In[0]), d.Matrix(rows, cols, e.In[1]), d.Matrix(rows, cols, nil), d.Matrix(rows, cols, e.Seeds[0])
	stride, n := int64(x.Stride), int32(cols)
	d.Launch("residual_forward", launch, x.Memory, y.Memory, sum.Memory, n, stride, stride, stride)
	d.CheckMatrix(c.Name+": sum", sum, e.Out[0], rounding)

	dx, dy := d.GradientMatrix(rows, cols, 0), d.GradientMatrix(rows, cols, accumulate)
	d.Launch("residual_backward", launch, dsum.Memory, dx.Memory, dy.Memory, n, stride, stride, stride, int32(0), accumulate)
	d.CheckGradientMatrix(c.Name+": dx", dx, 0, e.Gradients[0], 0)
	d.CheckGradientMatrix(c.Name+": dy", dy, accumulate, e.Gradients[1], rounding)
	// x + x, and a frozen y.
	d.Launch("residual_backward", launch, dsum.Memory, dx.Memory, dx.Memory, n, stride, stride, stride, int32(0), int32(1))
	d.Launch("residual_backward", launch, dsum.Memory, nil, dx.Memory, n, stride, stride, stride, int32(0), int32(0))
	d.CheckGradientMatrix(c.Name+": dx", dx, 0, e.Gradients[0], 0)
}
