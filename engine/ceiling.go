package engine

import (
	"math/rand/v2"
	"time"

	"caper/cuda"
)

// Ceilings measures what the GPU reaches at best: bytes a second, read and written, of a copy
// of 1 GiB, and operations a second of a bf16 product of random matrices [8192, 8192], the
// best of several. Zeros would flatter it: they take less power.
func (g *GPU) Ceilings() (bytes, flops float64, err error) {
	const size, n, repeats = 1 << 30, 8192, 10
	kept := len(g.memory)
	defer func() {
		for len(g.memory) > kept {
			g.free(g.memory[len(g.memory)-1])
		}
	}()
	from, to := g.alloc(size), g.alloc(size)
	bytes = 2 * size / g.best(repeats, func() { g.copy(to, from, size) })
	a, b, c := g.tensor(n, n, cuda.BFloat16), g.tensor(n, n, cuda.BFloat16), g.tensor(n, n, cuda.BFloat16)
	for seed, x := range []*Tensor{a, b} {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		x.Fill(func(int, int) float64 { return r.Float64() - 0.5 })
	}
	flops = ProductFLOPs(n, n, n) / g.best(repeats, func() { g.MatMul(c, Operand{Tensor: a}, Operand{Tensor: b}, false) })
	return bytes, flops, g.wait()
}

// best returns the seconds of the fastest of several runs of work, after one that is not
// counted.
func (g *GPU) best(repeats int, work func()) float64 {
	seconds := 0.0
	for i := range repeats + 1 {
		if d := g.time(work); i > 0 && (i == 1 || d.Seconds() < seconds) {
			seconds = d.Seconds()
		}
	}
	return seconds
}

// time returns how long work takes on the GPU.
func (g *GPU) time(work func()) (d time.Duration) {
	if g.idle() {
		return 0
	}
	start, err := g.device.NewEvent(true)
	if err != nil {
		g.fail(err)
		return 0
	}
	defer func() { g.fail(start.Close()) }()
	end, err := g.device.NewEvent(true)
	if err != nil {
		g.fail(err)
		return 0
	}
	defer func() { g.fail(end.Close()) }()
	g.submit()
	g.fail(g.stream.Record(start))
	work()
	g.submit()
	g.fail(g.stream.Record(end))
	g.fail(end.Synchronize())
	if d, err = end.Since(start); err != nil {
		g.fail(err)
	}
	return d
}
