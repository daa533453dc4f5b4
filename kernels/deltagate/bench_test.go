package deltagate

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) { optest.Benchmark(b, operator(2048, 4), 0) }
