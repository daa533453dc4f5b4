package linear

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) {
	const rows, out, in = 1500, 768, 256
	optest.Benchmark(b, operator(rows, out, in), 2*rows*out*in)
}
