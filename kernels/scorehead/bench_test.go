package scorehead

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) {
	const n, cols, labels, count = 1500, 256, 1, 200
	optest.Benchmark(b, operator(n, cols, labels, count), 2*cols*labels*count)
}
