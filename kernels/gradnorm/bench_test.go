package gradnorm

import (
	"testing"

	"caper/engine"
)

func BenchmarkNorm(b *testing.B) {
	dev := engine.CPU(0)
	params := []*engine.Param{engine.NewParam(dev, "p", 1000, 10000)}
	b.SetBytes(4 * 1e7)
	for b.Loop() {
		Norm(dev, params)
	}
}
