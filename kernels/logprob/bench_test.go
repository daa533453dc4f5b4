package logprob

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) {
	optest.Benchmark(b, operator(2048, 256, 8192, 512), 2*512*256*8192)
}
