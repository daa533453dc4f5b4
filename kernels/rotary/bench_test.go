package rotary

import (
	"testing"

	"caper/kernels/optest"
)

func Benchmark(b *testing.B) {
	o := Options{Heads: 4, Dim: 64, HeadStride: 128, RotaryDims: 16, Theta: 1e7, Eps: 1e-6, OffsetGain: true}
	optest.Benchmark(b, operator(1500, o), 0)
}
