package adamw

import (
	"testing"

	"caper/engine"
)

func BenchmarkStep(b *testing.B) {
	dev := engine.CPU(0)
	p := []*engine.Param{engine.NewParam(dev, "p", 1000, 10000)}
	s := NewState(p, []bool{true})
	b.SetBytes(28 * 1e7) // reads p, g, m, v and writes p, m, v
	for b.Loop() {
		Step(dev, p, s, options, 1)
	}
}
