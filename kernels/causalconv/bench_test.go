package causalconv

import (
	"testing"

	"caper/kernels/optest"
	"caper/kernels/treetest"
)

func Benchmark(b *testing.B) {
	tree := treetest.Prompt()
	c := build(512, 4)(tree)
	c.Name = "2048x512"
	optest.Benchmark(b, c, 0)
}
