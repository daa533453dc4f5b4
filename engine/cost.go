package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cost is what one call of an operator takes, as the operator itself describes it.
// Profiles, dry runs and plans all count by it.
//
// Floating-point operations are those of products, two a multiplication with its
// addition: what utilisation of a machine is measured by (PaLM, arXiv 2204.02311,
// appendix B). An operator that does a few operations an element has none; memory
// bounds it, and its bytes follow from its tensors.
type Cost struct {
	Operator string
	// Reads and Writes are the tensors of the forward pass. Nil entries are left out.
	Reads, Writes Tensors
	// Saves are those of them that the backward pass reads again. They have to be kept,
	// or made again, until then.
	Saves Tensors
	// Forward and Backward are operations; Again is the share of Backward that repeats
	// the forward pass, so as not to keep its results.
	Forward, Backward, Again float64
}

// ProductFLOPs returns the operations of a product of an m x k and a k x n matrix.
func ProductFLOPs(m, n, k int) float64 { return 2 * float64(m) * float64(n) * float64(k) }

// Wanted counts the tensors that get a gradient. In the backward pass of a product
// each of its factors takes another product, unless it is frozen.
func Wanted(factors ...*Tensor) float64 {
	n := 0.0
	for _, x := range factors {
		if !x.frozen {
			n++
		}
	}
	return n
}

// Touched stands in a Cost for x where an operator touches only so many of its rows.
func (x *Tensor) Touched(rows int) *Tensor {
	v := *x
	v.Rows, v.base, v.offset = rows, x, 0
	return &v
}

// Tensors is a list of tensors.
type Tensors []*Tensor

// Bytes returns the size of the tensors together.
func (ts Tensors) Bytes() float64 {
	n := 0.0
	for _, x := range ts {
		n += float64(x.Bytes())
	}
	return n
}

// String gives the shapes: "[3 x 4] [4 x 5]".
func (ts Tensors) String() string {
	var b strings.Builder
	for i, x := range ts {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "[%d x %d]", x.Rows, x.Cols)
	}
	return b.String()
}

func (ts Tensors) present() Tensors {
	present := make(Tensors, 0, len(ts))
	for _, x := range ts {
		if x != nil {
			present = append(present, x)
		}
	}
	return present
}

// Phase is the part of a step that a launch belongs to.
type Phase uint8

// The phases of a step.
const (
	Forward Phase = iota
	Replay        // forward once more, of what checkpointing has not kept
	Backward
	Update // the optimiser
)

// String returns the phase's name in lower case.
func (p Phase) String() string { return [...]string{"forward", "replay", "backward", "update"}[p] }

// Launch is one call of an operator in one phase, as an Observer hears of it.
type Launch struct {
	Operator string
	Phase    Phase
	// Reads and Writes are the tensors touched, gradients included: those that are
	// added to are among both. Saves are the cost's, in the forward pass.
	Reads, Writes, Saves Tensors
	// FLOPs are the floating-point operations, Again those of them that repeat others.
	FLOPs, Again float64
	Start        time.Time
	Duration     time.Duration
}

// Bytes returns the least that has to move between memory and processor.
func (l *Launch) Bytes() float64 { return l.Reads.Bytes() + l.Writes.Bytes() }

// Observer is told of every launch on the devices that it observes, when it is done.
// It must not keep the tensors beyond the tape's Reset.
type Observer interface {
	Observe(*Launch)
}

// Observed returns dev with its launches reported to o. What is not observed costs
// nothing.
func Observed(dev Device, o Observer) Device { return observed{dev, o} }

type observed struct {
	Device
	observer Observer
}

// ObserverOf returns who observes dev, or nil: for work outside a tape, such as the
// optimiser's, which reports itself.
func ObserverOf(dev Device) Observer {
	if o, ok := dev.(observed); ok {
		return o.observer
	}
	return nil
}

// observeForward runs op's forward pass and reports it.
func (t *Tape) observeForward(op Op, phase Phase) {
	c := op.Cost()
	l := Launch{Operator: c.Operator, Phase: phase, Reads: c.Reads.present(), Writes: c.Writes.present(), Saves: c.Saves.present(), FLOPs: c.Forward}
	l.Start = time.Now()
	op.Forward(t)
	t.finish()
	l.Duration = time.Since(l.Start)
	t.observer.Observe(&l)
}

// observeBackward runs op's backward pass and reports it, unless no result of op has a
// gradient: then there is nothing to do.
func (t *Tape) observeBackward(op Op) {
	c := op.Cost()
	l := Launch{Operator: c.Operator, Phase: Backward, FLOPs: c.Backward, Again: c.Again}
	given := t.gradients(c.Writes)
	l.Reads = slices.Concat(c.Saves.present(), given, t.gradients(c.Reads))
	l.Start = time.Now()
	op.Backward(t)
	t.finish()
	l.Duration = time.Since(l.Start)
	if len(given) > 0 {
		l.Writes = t.gradients(c.Reads)
		t.observer.Observe(&l)
	}
}

// finish waits for a GPU's work, so that it can be timed.
func (t *Tape) finish() {
	if t.gpu != nil {
		t.gpu.wait()
	}
}

// gradients returns those of xs' gradients that are there.
func (t *Tape) gradients(xs Tensors) Tensors {
	var gs Tensors
	for _, x := range xs.present() {
		if g := t.Gradient(x); g != nil {
			gs = append(gs, g.Touched(x.Rows))
		}
	}
	return gs
}
