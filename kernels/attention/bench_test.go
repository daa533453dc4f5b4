package attention

import (
	"testing"

	"caper/engine"
	"caper/kernels/optest"
	"caper/kernels/treetest"
)

func Benchmark(b *testing.B) {
	o := Options{Heads: 4, KVHeads: 2, Dim: 64, GateStride: 128, GateOffset: 64}
	for _, shape := range []struct {
		name string
		tree *engine.Tree
	}{
		{"sequence of 2048", treetest.Shape{Parents: []int{-1}, Lengths: []int{2048}}.Tree()},
		{"prompt and branches", treetest.Prompt()},
	} {
		pairs := 0.0 // of a token and one that it sees
		for _, p := range shape.tree.Position {
			pairs += float64(p + 1)
		}
		c := build(o)(shape.tree)
		c.Name = shape.name
		optest.Benchmark(b, c, 4*pairs*float64(o.Heads*o.Dim))
	}
}
