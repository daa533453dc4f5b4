package causalconv

import (
	"slices"
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
	"caper/kernels/treetest"
)

var kernels = optest.Kernels{
	File: "kernels/causalconv/op.cu",
	Registers: map[string]int{
		"causalconv_forward": 72, "causalconv_backward": 128, "causalconv_weight_gradient": 40, "causalconv_decode": 64,
	},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for i, s := range treetest.Shapes {
			proveKernels(d, s, 33, 4, int32(i%2))
		}
		branches := treetest.Shapes[len(treetest.Shapes)-1]
		for _, taps := range []int{1, 2, 3} {
			proveKernels(d, branches, 5, taps, 0)
		}
		proveKernels(d, branches, 600, 4, 1)
		for _, taps := range []int{1, 2, 4} {
			proveDecode(d, 70, taps)
		}
	})
}

const rounding = 1.0 / 256 // one, to bf16

func proveKernels(d *optest.EmulatedGPU, s treetest.Shape, channels, taps int, accumulate int32) {
	d.Helper()
	tree := s.Tree()
	c := build(channels, taps)(tree)
	e := c.Example()
	rows := tree.Rows()
	x, w, y, dy := d.Matrix(rows, channels, e.In[0]), d.Matrix(channels, taps, e.In[1]), d.Matrix(rows, channels, nil), d.Matrix(rows, channels, e.Seeds[0])
	before, sibling := optest.Copy(d, tree.Before), optest.Copy(d, tree.Sibling)
	shape := []any{int32(rows), int32(channels), int32(taps), int64(x.Stride), int64(w.Stride), int64(x.Stride)}
	columns := (channels + 127) / 128
	d.Launch("causalconv_forward", emulator.Launch{Grid: [3]int{(rows + 31) / 32, columns}, Block: [3]int{32}},
		slices.Concat([]any{x.Memory, w.Memory, before, y.Memory}, shape)...)
	d.CheckMatrix(s.Name+": y", y, e.Out[0], rounding)

	blocks := (rows + 63) / 64
	dx, partial, dw := d.GradientMatrix(rows, channels, accumulate), d.NewFloat32(blocks*4*channels), d.WeightGradient(channels*taps)
	d.Launch("causalconv_backward", emulator.Launch{Grid: [3]int{blocks, columns}, Block: [3]int{32}},
		slices.Concat([]any{x.Memory, w.Memory, dy.Memory, dx.Memory, partial, before, sibling}, shape, []any{int64(x.Stride), accumulate})...)
	d.Launch("causalconv_weight_gradient", emulator.Launch{Grid: [3]int{(channels + 31) / 32, taps}, Block: [3]int{256}},
		partial, dw, int32(blocks), int32(channels), int32(taps), int64(taps))
	d.CheckGradientMatrix(s.Name+": dx", dx, accumulate, e.Gradients[0], rounding)
	d.CheckWeightGradient(s.Name+": dw", dw, e.Gradients[1], 1e-5) // sums in float32, of slopes to 1e-6
}

// Three sequences, each as one step from its start and then in two more from its window, in
// turn in place and to another window.
func proveDecode(d *optest.EmulatedGPU, channels, taps int) {
	d.Helper()
	s := treetest.Shape{Parents: []int{-1, -1, -1}, Lengths: []int{4, 9, 17}}
	tree := s.Tree()
	e := build(channels, taps)(tree).Example()
	w := d.Matrix(channels, taps, e.In[1])
	windows := d.Matrix(6*max(taps-1, 1), channels, nil)
	done, at := []int32{0, 0, 0}, []int32{-1, -1, -1}
	for turn := range int32(3) {
		var steps Steps
		var x, want []float64
		for i, n := range tree.Len {
			piece := []int32{1, n / 3, n - 1 - n/3}[turn]
			to := int32(i)
			if turn == 2 {
				to += 3
			}
			steps.Add(int(piece), at[i], to)
			from := int(tree.Start[i]+done[i]) * channels
			x = append(x, e.In[0][from:from+int(piece)*channels]...)
			want = append(want, e.Out[0][from:from+int(piece)*channels]...)
			done[i], at[i] = done[i]+piece, to
		}
		xs, y := d.Matrix(steps.rows(), channels, x), d.Matrix(steps.rows(), channels, nil)
		d.Launch("causalconv_decode", emulator.Launch{Grid: [3]int{3, (channels + 127) / 128}, Block: [3]int{32}}, xs.Memory, w.Memory, windows.Memory,
			optest.Copy(d, steps.Start), optest.Copy(d, steps.Len), optest.Copy(d, steps.From), optest.Copy(d, steps.To), y.Memory,
			int32(channels), int32(taps), int64(xs.Stride), int64(w.Stride), int64(windows.Stride), int64(y.Stride))
		d.CheckMatrix("decode", y, want, rounding)
	}
}
