package adamw

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

var options = Options{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}

// train takes five steps on parameters around a block's size and returns them.
func train(dev engine.Device, newState func([]*engine.Param, []bool) *State) ([]*engine.Param, *State) {
	params := []*engine.Param{engine.NewFrozen(dev, "frozen", 2, 2)}
	decay := []bool{true}
	rng := engine.Random(1, "test", 0, 0)
	for i, n := range []int{1, 17, 1<<14 - 1, 1<<14 + 1} {
		p := engine.NewParam(dev, fmt.Sprint(i), 1, n)
		fill(p.Tensor, rng)
		params, decay = append(params, p), append(decay, i%2 == 1)
	}
	s := newState(params, decay)
	for range 5 {
		for _, p := range params[1:] {
			fill(p.Grad, rng)
		}
		Step(dev, params, s, options, 0.5)
	}
	return params, s
}

func TestStep(t *testing.T) {
	one, two := engine.CPU(1), engine.CPU(2)
	want, _ := train(engine.Reference(), NewState)
	got, s := train(one, NewState)
	again, _ := train(two, NewState)
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

// fill draws numbers that bf16 holds.
func fill(x *engine.Tensor, rng *rand.Rand) {
	values := make([]float32, x.Rows*x.Cols)
	for i := range values {
		values[i] = float32(optest.RoundBF16(rng.NormFloat64()))
	}
	x.Write(values)
}

// On a GPU the weights are kept in float32, and the model computes with those rounded. Means
// in bf16, rounded at random, lead to other weights, but on average not far from them.
func TestStepOnCUDA(t *testing.T) {
	want, _ := train(engine.Reference(), NewState)
	dev := optest.CUDA(t)
	bf16 := func(params []*engine.Param, decay []bool) *State { return NewBF16State(dev, params, decay, 1) }
	for name, c := range map[string]struct {
		newState    func([]*engine.Param, []bool) *State
		worst, mean float64
	}{
		// Five roundings of weights below 4, by up to 1.2e-7 each.
		"float32": {NewState, 1e-6, 1e-7},
		// A step is 1e-2 long; a mean's part of it, rounded by up to 2^-8 of itself, five times.
		"bf16": {bf16, 1e-2, 1e-4},
	} {
		got, s := train(dev, c.newState)
		again, _ := train(dev, c.newState)
		for i := range want {
			if s.Master[i] == nil {
				continue // frozen
			}
			n := want[i].Cols
			master, working, repeated := make([]float32, n), make([]float32, n), make([]float32, n)
			s.Master[i].Read(master)
			got[i].Read(working)
			again[i].Read(repeated)
			worst, sum := 0.0, 0.0
			for j := range n {
				d := float64(master[j]) - want[i].At(0, j)
				worst, sum = max(worst, math.Abs(d)), sum+d
				if float64(working[j]) != optest.RoundBF16(float64(master[j])) {
					t.Fatalf("%s: weight %d of parameter %d is %g, its master weight %g", name, j, i, working[j], master[j])
				}
			}
			if mean := math.Abs(sum) / float64(n); worst > c.worst || n > 1000 && mean > c.mean {
				t.Errorf("%s: parameter %d is off by up to %g, by %g on average", name, i, worst, mean)
			}
			if !slices.Equal(working, repeated) {
				t.Errorf("%s: parameter %d differs when trained again", name, i)
			}
		}
	}
	if err := engine.Wait(dev); err != nil {
		t.Error(err)
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
	params, s := train(dev, NewState)
	if n := testing.AllocsPerRun(5, func() { Step(dev, params, s, options, 1) }); n != 0 {
		t.Errorf("allocates %g times", n)
	}
}
