package scorehead

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/scorehead/op.cu",
	Registers: map[string]int{"scorehead_forward": 40, "scorehead_backward_hidden": 48, "scorehead_backward_weight": 56, "scorehead_backward_weight_bf16": 56},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, shape := range [][4]int{{1, 1, 1, 1}, {5, 15, 1, 3}, {50, 64, 2, 40}, {9, 100, 3, 5}, {2, 600, 1, 70}} {
			proveKernels(d, shape[0], shape[1], shape[2], shape[3])
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, n, cols, labels, count int) {
	d.Helper()
	c := operator(n, cols, labels, count)
	e := c.Example()
	const (
		rounding  = 1.0 / 256 // one, to bf16
		tolerance = 1e-6      // sums in float32
	)
	hidden, w, named := d.Matrix(n, cols, e.In[0]), d.Matrix(labels, cols, e.In[1]), optest.Copy(d, named(n, count))
	y, dy := d.NewFloat32(count*labels), d.Float32(e.Seeds[0])
	stride, single := int64(hidden.Stride), int64(labels)
	block := [3]int{256}
	d.Launch("scorehead_forward", emulator.Launch{Grid: [3]int{(count*labels + 7) / 8}, Block: block}, hidden.Memory, w.Memory, named, y,
		int32(count), int32(labels), int32(cols), stride, stride, single)
	d.CheckFloat32(c.Name+": y", y, e.Out[0], tolerance)

	dhidden, dw := d.GradientMatrix(n, cols, 1), d.WeightGradient(labels*cols)
	d.Launch("scorehead_backward_hidden", emulator.Launch{Grid: [3]int{count}, Block: [3]int{64}}, w.Memory, dy, named, dhidden.Memory,
		int32(count), int32(labels), int32(cols), stride, single, stride)
	d.Launch("scorehead_backward_weight", emulator.Launch{Grid: [3]int{(cols + 255) / 256, labels}, Block: block}, hidden.Memory, dy, named, dw,
		int32(count), int32(cols), stride, single, int64(cols))
	rows := d.GradientMatrix(labels, cols, 1) // of another matrix
	d.Launch("scorehead_backward_weight_bf16", emulator.Launch{Grid: [3]int{(cols + 255) / 256, labels}, Block: block}, hidden.Memory, dy, named, rows.Memory,
		int32(count), int32(cols), stride, single, int64(rows.Stride))
	d.CheckGradientMatrix(c.Name+": dw in bf16", rows, 1, e.Gradients[1], rounding)
	d.CheckGradientMatrix(c.Name+": dhidden", dhidden, 1, e.Gradients[0], rounding)
	d.CheckWeightGradient(c.Name+": dw", dw, e.Gradients[1], tolerance)
}
