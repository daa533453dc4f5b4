package l2norm

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) { optest.Benchmark(b, operator(1500, 8, 32), 0) }
