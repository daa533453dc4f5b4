package embedding

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/embedding/op.cu",
	Registers: map[string]int{"embedding_forward": 32, "embedding_order": 40, "embedding_backward": 72},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, shape := range [][3]int{{1, 1, 1}, {5, 3, 15}, {33, 9, 64}, {100, 50, 130}, {40, 2, 300}} {
			proveKernels(d, shape[0], shape[1], shape[2])
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, n, vocabulary, cols int) {
	d.Helper()
	c := operator(n, vocabulary, cols)
	e := c.Example()
	ids, order, uses := optest.Copy(d, tokens(n, vocabulary)), optest.Copy(d, make([]int32, n)), optest.Copy(d, make([]int32, n))
	table, y, dy := d.Matrix(vocabulary, cols, e.In[0]), d.Matrix(n, cols, nil), d.Matrix(n, cols, e.Seeds[0])
	stride := int64(table.Stride)
	launch := emulator.Launch{Grid: [3]int{n, (cols + 255) / 256}, Block: [3]int{32}}
	d.Launch("embedding_forward", launch, table.Memory, ids, y.Memory, int32(cols), stride, stride)
	d.CheckMatrix(c.Name+": y", y, e.Out[0], 0)

	dtable := d.WeightGradient(vocabulary * cols)
	d.Launch("embedding_order", emulator.Launch{Grid: [3]int{(n + 7) / 8}, Block: [3]int{256}}, ids, order, uses, int32(n))
	d.Launch("embedding_backward", launch, dy.Memory, ids, order, uses, dtable, int32(cols), stride, int64(cols))
	d.CheckWeightGradient(c.Name+": dtable", dtable, e.Gradients[0], 1e-6) // sums in float32
}
