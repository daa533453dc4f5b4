package l2norm

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/l2norm/op.cu",
	Registers: map[string]int{"l2norm_forward": 32, "l2norm_backward": 48},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

// Heads as in the models, and ragged ones.
func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, shape := range [][4]int{{1, 1, 3, 1}, {2, 3, 15, 2}, {33, 2, 16, 2}, {9, 4, 33, 8}, {7, 2, 128, 16}, {5, 1, 256, 32}} {
			for _, accumulate := range []int32{0, 1} {
				proveKernels(d, shape[0], shape[1], shape[2], shape[3], accumulate)
			}
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, rows, heads, dim, width int, accumulate int32) {
	d.Helper()
	c := operator(rows, heads, dim)
	e := c.Example()
	const rounding, eps = 1.0 / 256, float32(1e-6) // one, to bf16
	cols := heads * dim
	x, y, dy := d.Matrix(rows, cols, e.In[0]), d.Matrix(rows, cols, nil), d.Matrix(rows, cols, e.Seeds[0])
	stride, shape := int64(x.Stride), []any{int32(rows), int32(heads), int32(dim), int32(width)}
	launch := emulator.Launch{Grid: [3]int{(rows*heads*width + 63) / 64}, Block: [3]int{64}}
	d.Launch("l2norm_forward", launch, append([]any{x.Memory, y.Memory}, append(shape, stride, stride, eps)...)...)
	d.CheckMatrix(c.Name+": y", y, e.Out[0], rounding)

	dx := d.GradientMatrix(rows, cols, accumulate)
	d.Launch("l2norm_backward", launch, append([]any{x.Memory, dy.Memory, dx.Memory}, append(shape, stride, stride, stride, eps, accumulate)...)...)
	d.CheckGradientMatrix(c.Name+": dx", dx, accumulate, e.Gradients[0], rounding)
}
