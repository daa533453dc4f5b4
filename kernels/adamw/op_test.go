package adamw

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"caper/engine"
)

var options = Options{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}

// train takes five steps on parameters around a block's size and returns them.
func train(dev engine.Device) ([]*engine.Param, *State) {
	params := []*engine.Param{engine.NewFrozen(dev, "frozen", 2, 2)}
	decay := []bool{true}
	rng := engine.Random(1, "test", 0, 0)
	for i, n := range []int{1, 17, 1<<14 - 1, 1<<14 + 1} {
		p := engine.NewParam(dev, fmt.Sprint(i), 1, n)
		for j := range n {
			p.Set(0, j, float64(float32(rng.NormFloat64())))
		}
		params, decay = append(params, p), append(decay, i%2 == 1)
	}
	s := NewState(params, decay)
	for range 5 {
		for _, p := range params[1:] {
			for j := range p.Cols {
				p.Grad.Set(0, j, float64(float32(rng.NormFloat64())))
			}
		}
		Step(dev, params, s, options, 0.5)
	}
	return params, s
}

func TestStep(t *testing.T) {
	one, two := engine.CPU(1), engine.CPU(2)
	want, _ := train(engine.Reference())
	got, s := train(one)
	again, _ := train(two)
	if s.Step != 5 {
		t.Errorf("%d steps counted, want 5", s.Step)
	}
	for i := range want {
		worst := 0.0
		for j := range want[i].Rows * want[i].Cols {
			worst = max(worst, math.Abs(got[i].At(0, j)-want[i].At(0, j)))
		}
		// Five roundings of weights below 4, by up to 1.2e-7 each.
		if worst > 1e-6 {
			t.Errorf("parameter %s is off by %g", want[i].Name, worst)
		}
		if !slices.Equal(got[i].F32, again[i].F32) {
			t.Errorf("parameter %s differs between one thread and two", want[i].Name)
		}
	}
}

// The first step is the learning rate against the sign of the gradient, plus decay
// where it applies.
func TestFirstStep(t *testing.T) {
	for _, dev := range []engine.Device{engine.Reference(), engine.CPU(1)} {
		for _, decays := range []bool{false, true} {
			p := engine.NewParam(dev, "p", 1, 1)
			p.Set(0, 0, 2)
			p.Grad.Set(0, 0, -30)
			Step(dev, []*engine.Param{p}, NewState([]*engine.Param{p}, []bool{decays}), options, 1)
			want := 2 + options.LR
			if decays {
				want -= options.LR * options.WeightDecay * 2
			}
			if got := p.At(0, 0); math.Abs(got-want) > 3e-7 {
				t.Errorf("%s, decay %v: %v, want %v", dev.Name(), decays, got, want)
			}
		}
	}
}

// A decay of 1e-6 a step must not drown in the rounding of 1 - 1e-6.
func TestSmallDecay(t *testing.T) {
	dev := engine.CPU(1)
	p := engine.NewParam(dev, "p", 1, 1)
	p.Set(0, 0, 1)
	s := NewState([]*engine.Param{p}, []bool{true})
	o := Options{LR: 1e-5, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1}
	const steps = 20000
	for range steps {
		Step(dev, []*engine.Param{p}, s, o, 1)
	}
	// Each step rounds 1e-6 to a multiple of 6e-8, here 1.0133e-6.
	if got, want := 1-p.At(0, 0), 1e-6*steps; math.Abs(got-want) > 0.02*want {
		t.Errorf("decayed by %g after %d steps, want %g", got, steps, want)
	}
}

func TestAllocations(t *testing.T) {
	dev := engine.CPU(2)
	params, s := train(dev)
	if n := testing.AllocsPerRun(5, func() { Step(dev, params, s, options, 1) }); n != 0 {
		t.Errorf("allocates %g times", n)
	}
}
