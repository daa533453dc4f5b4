package embedding

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) { optest.Benchmark(b, operator(1500, 4096, 256), 0) }
