package rotary

import (
	"slices"
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/rotary/op.cu",
	Registers: map[string]int{"rotary_forward": 48, "rotary_backward": 72, "rotary_weight_gradient": 40},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

// Heads as in the models, with a gate between or not, and ragged ones.
func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, c := range []struct {
			rows, width int
			o           Options
		}{
			{1, 1, Options{Heads: 1, Dim: 4, HeadStride: 4, RotaryDims: 4, Theta: 1e4, Eps: 1e-6}},
			{5, 4, Options{Heads: 3, Dim: 15, HeadStride: 15, RotaryDims: 6, Theta: 1e7, Eps: 1e-6, OffsetGain: true}},
			{33, 4, Options{Heads: 2, Dim: 32, HeadStride: 64, RotaryDims: 8, Theta: 1e7, Eps: 1e-6, OffsetGain: true}},
			{70, 4, Options{Heads: 2, Dim: 24, HeadStride: 24, RotaryDims: 0, Theta: 1e6, Eps: 1e-6}},
			{9, 16, Options{Heads: 2, Dim: 128, HeadStride: 128, RotaryDims: 128, Theta: 1e6, Eps: 1e-6}},
			{5, 32, Options{Heads: 2, Dim: 256, HeadStride: 512, RotaryDims: 64, Theta: 1e7, Eps: 1e-6, OffsetGain: true}},
		} {
			for _, accumulate := range []int32{0, 1} {
				proveKernels(d, c.rows, c.width, c.o, accumulate)
			}
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, rows, width int, o Options, accumulate int32) {
	d.Helper()
	c := operator(rows, o)
	e := c.Example()
	const rounding = 1.0 / 256 // one, to bf16
	angles := optest.Copy(d, gather(nil, o.RotaryDims, o.Theta, positions(rows)))
	x, w, y, dy := d.Matrix(rows, c.Inputs[0].Cols, e.In[0]), d.Matrix(1, o.Dim, e.In[1]), d.Matrix(rows, o.Heads*o.Dim, nil), d.Matrix(rows, o.Heads*o.Dim, e.Seeds[0])
	shape := []any{int32(rows), int32(o.Heads), int32(o.Dim), int32(o.HeadStride), int32(o.RotaryDims), int32(width), int64(x.Stride), int64(y.Stride)}
	rest := []any{float32(o.Eps), float32(o.offset())}
	all := (rows*o.Heads*width + 255) / 256
	d.Launch("rotary_forward", emulator.Launch{Grid: [3]int{all}, Block: [3]int{256}},
		slices.Concat([]any{x.Memory, w.Memory, angles, y.Memory}, shape, rest)...)
	d.CheckMatrix(c.Name+": y", y, e.Out[0], rounding)

	blocks := min(all, 2) // several heads a group
	partial, dw := d.NewFloat32(blocks*o.Dim), d.WeightGradient(o.Dim)
	dx := d.GradientMatrix(rows, c.Inputs[0].Cols, 1) // between the heads are gates, of which this is no gradient
	want := slices.Clone(e.Gradients[0])
	if accumulate == 0 {
		for i, col := range want {
			if i%x.Cols%o.HeadStride < o.Dim {
				want[i] = col - 0.5 // what was there does not count
			}
		}
	}
	d.Launch("rotary_backward", emulator.Launch{Grid: [3]int{blocks}, Block: [3]int{256}},
		slices.Concat([]any{x.Memory, w.Memory, angles, dy.Memory, dx.Memory, partial}, shape, []any{int64(dx.Stride)}, rest, []any{accumulate})...)
	d.Launch("rotary_weight_gradient", emulator.Launch{Grid: [3]int{(o.Dim + 31) / 32}, Block: [3]int{256}}, partial, dw, int32(blocks), int32(o.Dim))
	d.CheckGradientMatrix(c.Name+": dx", dx, 1, want, rounding)
	d.CheckWeightGradient(c.Name+": dw", dw, e.Gradients[1], 2e-5) // sums in float32, whose terms cancel in part
}
