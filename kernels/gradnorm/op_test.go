package gradnorm

import (
	"math"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

// gradients makes parameters whose gradients hold arbitrary numbers.
func gradients(dev engine.Device) []*engine.Param {
	params := []*engine.Param{engine.NewFrozen(dev, "frozen", 3, 3)}
	rng := engine.Random(1, "test", 0, 0)
	for _, n := range []int{1, 15, 16, 17, 1023, 70001} {
		p, g := engine.NewParam(dev, "p", 1, n), make([]float32, n)
		for j := range g {
			g[j] = float32(rng.NormFloat64())
		}
		p.Grad.Write(g)
		params = append(params, p)
	}
	return params
}

func TestNorm(t *testing.T) {
	want := Norm(engine.Reference(), gradients(engine.Reference()))
	one, two := engine.CPU(1), engine.CPU(2)
	got := Norm(one, gradients(one))
	// The same numbers, summed in float64 in another order.
	if math.Abs(got-want) > 1e-13*want {
		t.Errorf("norm %v, specification %v", got, want)
	}
	if again := Norm(two, gradients(two)); again != got {
		t.Errorf("norm %v with two threads, %v with one", again, got)
	}
}

func TestNormOnCUDA(t *testing.T) {
	want, dev := Norm(engine.Reference(), gradients(engine.Reference())), optest.CUDA(t)
	for range 2 { // the second time in the same memory
		if got := Norm(dev, gradients(dev)); math.Abs(got-want) > 1e-13*want {
			t.Errorf("norm %v, specification %v", got, want)
		}
	}
	if err := engine.Wait(dev); err != nil {
		t.Error(err)
	}
}

// Squares that no float32 holds still have a norm.
func TestRange(t *testing.T) {
	dev := engine.CPU(1)
	p := engine.NewParam(dev, "p", 2, 20)
	p.Grad.Set(1, 3, 3e30)
	p.Grad.Set(0, 0, -4e30)
	if got := Norm(dev, []*engine.Param{p}); math.Abs(got-5e30) > 1e24 {
		t.Errorf("norm %g, want 5e30", got)
	}
	p.Grad.Set(1, 19, math.NaN())
	if got := Norm(dev, []*engine.Param{p}); !math.IsNaN(got) {
		t.Errorf("norm %g of a gradient that holds NaN", got)
	}
}

func TestAllocations(t *testing.T) {
	dev := engine.CPU(2)
	params := gradients(dev)
	if n := testing.AllocsPerRun(5, func() { Norm(dev, params) }); n != 0 {
		t.Errorf("allocates %g times", n)
	}
}
