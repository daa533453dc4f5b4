package optest

import (
	"fmt"
	"testing"

	"caper/engine"
)

// Benchmark times a case on one and on two threads: the forward pass, and the whole
// step with its backward pass. flops is the number of operations of one forward
// pass; 0 stands for an operator bound by memory, whose rate is given in bytes of
// inputs and results.
func Benchmark(b *testing.B, c Case, flops float64) {
	for _, threads := range []int{1, 2} {
		dev := engine.CPU(threads)
		b.Run(fmt.Sprintf("%s/forward/threads=%d", c.Name, threads), func(b *testing.B) { benchmark(b, c, dev, flops, true) })
		b.Run(fmt.Sprintf("%s/step/threads=%d", c.Name, threads), func(b *testing.B) { benchmark(b, c, dev, 3*flops, false) })
	}
}

func benchmark(b *testing.B, c Case, dev engine.Device, flops float64, inference bool) {
	tape := engine.NewTape(dev)
	tape.Inference = inference
	var in, out []*engine.Tensor
	bytes := 0
	for i, values := range c.draw() {
		p := engine.NewParam(dev, c.Inputs[i].Name, c.Inputs[i].Rows, c.Inputs[i].Cols)
		fill(p.Tensor, values)
		in = append(in, p.Tensor)
		bytes += 4 * len(values)
	}
	var seeds [][]float32
	step := func() {
		tape.Reset()
		out = c.Forward(tape, in, out[:0])
		if inference {
			return
		}
		for j, y := range out {
			copy(tape.AddTo(y).F32, seeds[j])
		}
		tape.Backward()
	}
	for j, y := range c.Forward(tape, in, nil) {
		seeds = append(seeds, make([]float32, y.Rows*y.Cols))
		for e := range seeds[j] {
			seeds[j][e] = float32(seedAt(j, e))
		}
		bytes += 4 * y.Rows * y.Cols
	}
	step()
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
	perSecond := float64(b.N) / b.Elapsed().Seconds()
	if flops > 0 {
		b.ReportMetric(flops*perSecond/1e9, "GFLOP/s")
	} else {
		b.ReportMetric(float64(bytes)*perSecond/1e9, "GB/s")
	}
}
