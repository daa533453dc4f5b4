package gatednorm

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/gatednorm/op.cu",
	Registers: map[string]int{"gatednorm_forward": 48, "gatednorm_backward": 80, "gatednorm_weight_gradient": 40},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

// Heads as in the models, and ragged ones.
func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, shape := range [][4]int{{1, 1, 3, 1}, {2, 3, 15, 2}, {33, 2, 16, 2}, {70, 4, 33, 8}, {17, 2, 128, 16}, {5, 1, 256, 32}} {
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
	x, z, w := d.Matrix(rows, cols, e.In[0]), d.Matrix(rows, cols, e.In[1]), d.Matrix(1, dim, e.In[2])
	y, dy := d.Matrix(rows, cols, nil), d.Matrix(rows, cols, e.Seeds[0])
	stride := int64(x.Stride)
	shape := []any{int32(rows), int32(heads), int32(dim), int32(width)}
	all := (rows*heads*width + 255) / 256
	d.Launch("gatednorm_forward", emulator.Launch{Grid: [3]int{all}, Block: [3]int{256}},
		append([]any{x.Memory, z.Memory, w.Memory, y.Memory}, append(shape, stride, stride, stride, eps)...)...)
	d.CheckMatrix(c.Name+": y", y, e.Out[0], rounding)

	blocks := min(all, 2) // several heads a group
	partial, dw := d.NewFloat32(blocks*dim), d.WeightGradient(dim)
	dx, dz := d.GradientMatrix(rows, cols, accumulate), d.GradientMatrix(rows, cols, 1-accumulate)
	d.Launch("gatednorm_backward", emulator.Launch{Grid: [3]int{blocks}, Block: [3]int{256}},
		append([]any{x.Memory, z.Memory, w.Memory, dy.Memory, dx.Memory, dz.Memory, partial},
			append(shape, stride, stride, stride, stride, stride, eps, accumulate, 1-accumulate)...)...)
	d.Launch("gatednorm_weight_gradient", emulator.Launch{Grid: [3]int{(dim + 31) / 32}, Block: [3]int{256}}, partial, dw, int32(blocks), int32(dim))
	d.CheckGradientMatrix(c.Name+": dx", dx, accumulate, e.Gradients[0], rounding)
	d.CheckGradientMatrix(c.Name+": dz", dz, 1-accumulate, e.Gradients[1], rounding)
	d.CheckWeightGradient(c.Name+": dw", dw, e.Gradients[2], 2e-5) // sums in float32, whose terms cancel in part
}
