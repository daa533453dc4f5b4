package deltagate

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/deltagate/op.cu",
	Registers: map[string]int{"deltagate_forward": 32, "deltagate_backward": 64, "deltagate_weight_gradient": 40},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, shape := range [][2]int{{1, 1}, {2, 16}, {5, 3}, {127, 20}, {33, 70}} {
			for _, accumulate := range []int32{0, 1} {
				proveKernels(d, shape[0], shape[1], accumulate)
			}
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, rows, heads int, accumulate int32) {
	d.Helper()
	c := operator(rows, heads)
	e := c.Example()
	const (
		rounding  = 1.0 / 256 // one, to bf16
		tolerance = 2e-6      // two functions of 2e-7 and a product, in float32
	)
	a, b, aLog, dtBias := d.Matrix(rows, heads, e.In[0]), d.Matrix(rows, heads, e.In[1]), d.Float32(e.In[2]), d.Float32(e.In[3])
	g, beta := d.NewFloat32(rows*heads), d.NewFloat32(rows*heads)
	stride, single, columns := int64(a.Stride), int64(heads), (heads+31)/32
	d.Launch("deltagate_forward", emulator.Launch{Grid: [3]int{(rows + 7) / 8, columns}, Block: [3]int{256}}, a.Memory, b.Memory, aLog, dtBias, g, beta,
		int32(rows), int32(heads), stride, stride, single, single)
	d.CheckFloat32(c.Name+": g", g, e.Out[0], tolerance)
	d.CheckFloat32(c.Name+": beta", beta, e.Out[1], tolerance)

	const blockRows = 50
	blocks := (rows + blockRows - 1) / blockRows
	partial, dtBiasSum, aLogSum := d.NewFloat32(2*blocks*heads), d.WeightGradient(heads), d.WeightGradient(heads)
	da, db := d.GradientMatrix(rows, heads, accumulate), d.GradientMatrix(rows, heads, 1-accumulate)
	d.Launch("deltagate_backward", emulator.Launch{Grid: [3]int{blocks, columns}, Block: [3]int{256}}, a.Memory, b.Memory, aLog, dtBias, g,
		d.Float32(e.Seeds[0]), d.Float32(e.Seeds[1]), da.Memory, db.Memory, partial, int32(rows), int32(heads), int32(blockRows),
		stride, stride, single, single, single, stride, stride, accumulate, 1-accumulate)
	d.Launch("deltagate_weight_gradient", emulator.Launch{Grid: [3]int{columns, 2}, Block: [3]int{256}}, partial, dtBiasSum, aLogSum, int32(blocks), int32(heads))
	d.CheckGradientMatrix(c.Name+": da", da, accumulate, e.Gradients[0], rounding)
	d.CheckGradientMatrix(c.Name+": db", db, 1-accumulate, e.Gradients[1], rounding)
	d.CheckWeightGradient(c.Name+": daLog", aLogSum, e.Gradients[2], 5e-6) // sums whose terms cancel in part
	d.CheckWeightGradient(c.Name+": ddtBias", dtBiasSum, e.Gradients[3], 5e-6)
}
