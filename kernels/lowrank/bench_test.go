package lowrank

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) {
	const rows, out, in, rank = 1500, 768, 256, 16
	optest.Benchmark(b, operator(rows, out, in, rank), 2*rows*(out*in+rank*(out+in)))
}
