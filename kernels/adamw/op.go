// Package adamw is the AdamW optimiser: Adam's step, with weight decay taken
// straight off the weights.
package adamw

import (
	"fmt"
	"math"
	"time"

	"caper/engine"
)

// Options are the constants of a step.
type Options struct {
	LR, Beta1, Beta2, Eps float64
	// WeightDecay applies to the parameters whose State.Decay is set.
	WeightDecay float64
}

// State is what the optimiser remembers between steps. A checkpoint of a run holds
// it beside the weights.
type State struct {
	Step int // steps taken
	// M and V are the running means of the gradient and of its square, by parameter,
	// shaped like it; nil for a frozen one.
	M, V []*engine.Tensor
	// Master holds the weights in float32, by parameter, where the device computes with a copy
	// in bf16; nil elsewhere. The first step sets it; who goes on from a later one does.
	Master []*engine.Tensor
	// Seed is that of the random numbers by which means in bf16 are rounded.
	Seed uint64
	// Decay says for each parameter whether weight decay applies to it.
	Decay []bool
}

// NewState returns the state before the first step. decay has one entry per
// parameter.
func NewState(params []*engine.Param, decay []bool) *State {
	return newState(params, decay, engine.MomentLike)
}

// NewBF16State is NewState on a GPU with M and V in bf16, which takes half their memory. They
// are rounded at random, up or down, so that on average no change is lost.
func NewBF16State(dev engine.Device, params []*engine.Param, decay []bool, seed uint64) *State {
	s := newState(params, decay, func(x *engine.Tensor) *engine.Tensor { return engine.NewFrozen(dev, "", x.Rows, x.Cols).Tensor })
	s.Seed = seed
	return s
}

func newState(params []*engine.Param, decay []bool, moment func(*engine.Tensor) *engine.Tensor) *State {
	if len(decay) != len(params) {
		panic(fmt.Sprintf("adamw: %d decay flags for %d parameters", len(decay), len(params)))
	}
	n := len(params)
	s := &State{M: make([]*engine.Tensor, n), V: make([]*engine.Tensor, n), Master: make([]*engine.Tensor, n), Decay: decay}
	for i, p := range params {
		if p.Grad != nil {
			s.M[i], s.V[i], s.Master[i] = moment(p.Tensor), moment(p.Tensor), newMaster(p.Tensor)
		}
	}
	return s
}

// Step updates the parameters with their gradients times scale, the clipping
// coefficient, and counts the step. Gradients stay as they are. params are those
// that s was made for; frozen ones are left alone.
func Step(dev engine.Device, params []*engine.Param, s *State, o Options, scale float64) {
	if s.Step == 0 {
		s.setMasters(dev, params)
	}
	s.Step++
	u := update{
		beta1: o.Beta1, beta2: o.Beta2, eps: o.Eps, scale: scale,
		step:    o.LR / (1 - math.Pow(o.Beta1, float64(s.Step))),
		correct: 1 / math.Sqrt(1-math.Pow(o.Beta2, float64(s.Step))),
	}
	for i, p := range params {
		if p.Grad == nil {
			continue
		}
		u.decay = 0
		if s.Decay[i] {
			u.decay = o.LR * o.WeightDecay
		}
		started := time.Now()
		switch {
		case p.F64 != nil:
			specUpdate(p.F64, p.Grad.F64, s.M[i].F64, s.V[i].F64, u)
		case p.F32 != nil:
			cpuUpdate(dev, p, s.M[i], s.V[i], u)
		case engine.GPUOf(dev) != nil:
			cudaUpdate(dev, p, s, i, u)
		}
		if o := engine.ObserverOf(dev); o != nil {
			o.Observe(&engine.Launch{
				Operator: "adamw", Phase: engine.Update, Start: started, Duration: time.Since(started),
				Reads: engine.Tensors{p.Tensor, p.Grad, s.M[i], s.V[i]}, Writes: engine.Tensors{p.Tensor, s.M[i], s.V[i]},
			})
		}
	}
}
