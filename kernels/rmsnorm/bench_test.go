package rmsnorm

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) { optest.Benchmark(b, operator(1500, 256, true), 0) }
