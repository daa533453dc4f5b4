package deltarule

import (
	"testing"

	"caper/engine"
	"caper/kernels/optest"
	"caper/kernels/treetest"
)

func Benchmark(b *testing.B) {
	for _, o := range []Options{
		{KeyHeads: 4, ValueHeads: 4, KeyDim: 32, ValueDim: 64},
		{KeyHeads: 4, ValueHeads: 8, KeyDim: 128, ValueDim: 128},
	} {
		for _, shape := range []struct {
			name string
			tree *engine.Tree
		}{
			{"sequence of 2048", treetest.Shape{Parents: []int{-1}, Lengths: []int{2048}}.Tree()},
			{"prompt and branches", treetest.Prompt()},
		} {
			// Per token and value head: three products with the state, and rows of the
			// chunk's triangles (section 3.3 of the source).
			d, dv := float64(o.KeyDim), float64(o.ValueDim)
			flops := float64(shape.tree.Rows()*o.ValueHeads) * (6*d*dv + chunk*(2*d+2*dv))
			c := build(o, mixed)(shape.tree)
			c.Name = shape.name
			if o.KeyDim == 128 {
				c.Name += ", heads of 128"
			}
			optest.Benchmark(b, c, flops)
		}
	}
}
