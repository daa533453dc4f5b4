package engine

import (
	"math"

	"caper/cuda"
)

// Op is one call of an operator, with the tensors that it works on. It looks at the
// tape for the device that it is on: Reference, CPU, CUDA, or one of shapes, on which
// nothing is computed.
type Op interface {
	// Forward computes the results.
	Forward(t *Tape)
	// Backward reads the gradients of the results (Tape.Gradient) and adds to the
	// gradients of the inputs (Tape.AddTo).
	Backward(t *Tape)
	// Cost describes the call. It is asked only when somebody observes the device.
	Cost() Cost
}

// NoBackward is embedded in an operator that has no backward pass. Its tape must be
// one for Inference.
type NoBackward struct{}

// Backward panics: the tape of such an operator is never run backwards.
func (NoBackward) Backward(*Tape) { panic("engine: operator without a backward pass") }

// Tape runs one step: it hands out the step's tensors from its arena, remembers
// the operators called, and walks them backwards. Reset makes it ready for the
// next step; after the largest step has been seen, a step allocates nothing.
//
// A Tape serves one goroutine at a time.
type Tape struct {
	dev      Device
	gpu      *GPU     // dev, where that is one
	observer Observer // nil when nobody looks
	values   arena    // what lasts until Reset
	scratch  arena    // what lasts for one operator
	headers  []*Tensor
	used     int
	calls    []call
	pools    map[any]opPool
	derived  map[any]opPool // by Once

	layers          []layer
	place           place
	brief, previous arena // what lasts for one layer; that of the layer before
	innerGrads      arena // what lasts for one layer run backwards: gradients of inner tensors
	cheap           bool  // NewCheap was called since the last operator ran

	uploads map[hostMemory]cuda.Ptr // what Ints and Floats have copied in this step
	staging staging
	asked   bool // the operator that is running has asked for CUDA

	// Checkpointing is what layers keep for the backward pass.
	Checkpointing Checkpointing
	// Inference stops the tape from remembering operators: no backward pass.
	Inference bool
	// Poison fills new tensors and scratch with NaN, so that a read of memory
	// that nobody wrote shows up in the result. For tests.
	Poison bool
}

// call is an operator that ran, and whether its results are cheap to make again.
type call struct {
	op    Op
	cheap bool
}

// NewTape returns an empty tape whose tensors live on dev.
func NewTape(dev Device) *Tape {
	return &Tape{dev: dev, gpu: GPUOf(dev), observer: ObserverOf(dev), pools: map[any]opPool{}}
}

// Device returns the device of the tape's tensors.
func (t *Tape) Device() Device { return t.dev }

// Reference reports whether operators must run their float64 specification.
func (t *Tape) Reference() bool { return t.dev.reference() }

// CPU reports whether operators must run their C code.
func (t *Tape) CPU() bool { return t.dev.runtime() != nil }

// New returns a tensor of the current step with undefined content. On a GPU it is bf16.
func (t *Tape) New(rows, cols int) *Tensor { return t.new(rows, cols, false, cuda.BFloat16) }

// NewFloat32 is New for what is float32 on a GPU, too.
func (t *Tape) NewFloat32(rows, cols int) *Tensor { return t.new(rows, cols, false, cuda.Float32) }

// NewAs is New with the type of x's elements.
func (t *Tape) NewAs(x *Tensor, rows, cols int) *Tensor { return t.new(rows, cols, false, x.element) }

// NewCheap is New for the results of an operator that are cheap to make again from
// what its backward pass needs anyway: Checkpointing may drop them. An operator uses
// it for all its results or for none.
func (t *Tape) NewCheap(rows, cols int) *Tensor {
	t.cheap = true
	return t.new(rows, cols, true, cuda.BFloat16)
}

// NewCheapFloat32 is NewCheap for what is float32 on a GPU, too.
func (t *Tape) NewCheapFloat32(rows, cols int) *Tensor {
	t.cheap = true
	return t.new(rows, cols, true, cuda.Float32)
}

func (t *Tape) new(rows, cols int, cheap bool, element cuda.Element) *Tensor {
	switch {
	case t.place == outside:
		return t.tensor(&t.values, rows, cols, element)
	case t.place == backwardInLayer:
		return t.tensor(&t.innerGrads, rows, cols, element)
	}
	memory := &t.values
	brief := t.isBrief(cheap)
	if brief {
		memory = &t.brief
	}
	x := t.tensor(memory, rows, cols, element)
	x.inner, x.brief = true, brief
	return x
}

// newGradient returns the gradient of x with undefined content; it lasts as long as
// that of x has to.
func (t *Tape) newGradient(x *Tensor) *Tensor {
	if x.inner {
		return t.tensor(&t.innerGrads, x.Rows, x.Cols, x.element)
	}
	return t.tensor(&t.values, x.Rows, x.Cols, x.element)
}

func (t *Tape) tensor(memory *arena, rows, cols int, element cuda.Element) *Tensor {
	x := t.header()
	*x = Tensor{Rows: rows, Cols: cols, Stride: cols}
	switch {
	case t.Reference():
		x.F64 = memory.float64s(rows * cols)
	case t.CPU():
		x.F32 = memory.float32s(rows * cols)
	case t.gpu != nil:
		x.Stride, x.gpu, x.element = stride(cols, element), t.gpu, element
		x.at = t.gpuMemory(memory, x.storage())
	default:
		*x = *t.dev.tensor(rows, cols, element)
		memory.count(rows * cols)
	}
	if t.Poison {
		poison(x.F32)
		poison(x.F64)
	}
	return x
}

// Zeros returns a tensor of zeros of the current step.
func (t *Tape) Zeros(rows, cols int) *Tensor {
	x := t.New(rows, cols)
	x.clear()
	return x
}

// Scratch returns n float32 with undefined content for the operator that is
// running. It is valid until the operator's Forward or Backward returns.
func (t *Tape) Scratch(n int) []float32 {
	if !t.CPU() {
		t.scratch.count(n)
		return nil
	}
	s := t.scratch.float32s(n)
	if t.Poison {
		poison(s)
	}
	return s
}

// Run runs op forward and remembers it for the backward pass.
func (t *Tape) Run(op Op) {
	t.forward(op, Forward)
	if !t.Inference {
		t.calls = append(t.calls, call{op, t.cheap})
	}
	t.cheap = false
}

func (t *Tape) forward(op Op, phase Phase) {
	t.asked = false
	if t.observer == nil {
		op.Forward(t)
	} else {
		t.observeForward(op, phase)
	}
	if t.gpu != nil && !t.asked {
		t.refuse(op, false)
	}
	t.scratch.reset()
}

// Seed adds weight to element (row, 0) of the gradient of x: the derivative of
// the loss with respect to it. Call it for every output that the loss uses, then
// Backward.
func (t *Tape) Seed(x *Tensor, row int, weight float64) {
	g := t.AddTo(x)
	g.Set(row, 0, g.At(row, 0)+weight)
}

// Backward runs the recorded operators from last to first. Gradients of
// parameters are added to what they hold.
func (t *Tape) Backward() {
	to := len(t.calls)
	for i := len(t.layers) - 1; i >= 0; i-- {
		l := t.layers[i]
		t.backward(l.to, to)
		t.backwardLayer(l)
		to = l.from
	}
	t.backward(0, to)
}

// backward runs calls [from, to) backwards.
func (t *Tape) backward(from, to int) {
	for i := to - 1; i >= from; i-- {
		t.asked = false
		if t.observer == nil {
			t.calls[i].op.Backward(t)
		} else {
			t.observeBackward(t.calls[i].op)
		}
		if t.gpu != nil && !t.asked {
			t.refuse(t.calls[i].op, true)
		}
		t.scratch.reset()
	}
}

// Reset ends the step: every tensor that the tape handed out becomes invalid.
func (t *Tape) Reset() {
	t.values.reset()
	t.scratch.reset()
	t.calls = t.calls[:0]
	t.layers = t.layers[:0]
	t.used = 0
	for _, p := range t.pools {
		p.rewind()
	}
	for _, d := range t.derived {
		d.rewind()
	}
	if t.gpu != nil {
		clear(t.uploads)
		t.staging.turn(t.gpu)
	}
}

// Close gives the memory of a GPU back. Elsewhere there is nothing to do.
func (t *Tape) Close() {
	if t.gpu == nil || t.gpu.device == nil {
		return
	}
	for _, a := range t.arenas() {
		a.free(t.gpu)
	}
	t.staging.free(t.gpu)
}

// arenas lists all of the tape's memory.
func (t *Tape) arenas() [arenas]*arena {
	return [arenas]*arena{&t.values, &t.scratch, &t.brief, &t.previous, &t.innerGrads}
}

const arenas = 5

// Bytes returns the memory that the tape's arenas hold.
func (t *Tape) Bytes() int {
	n := 0
	for _, a := range t.arenas() {
		n += a.bytes()
	}
	return n
}

// Demand is the memory that steps of a tape take, by arena, in bytes.
type Demand [arenas]int

// Bytes returns the memory in all.
func (d Demand) Bytes() int {
	n := 0
	for _, bytes := range d {
		n += bytes
	}
	return n
}

// Demand returns what the steps so far would have taken: on the CPU for a tape on Shapes, on
// a GPU for one on CUDAShapes.
func (t *Tape) Demand() (d Demand) {
	for i, a := range t.arenas() {
		d[i] = a.most
	}
	return d
}

// Reserve takes the memory for steps at once, before the first: they will hold that
// much and no more, whatever their order. A tape that is not told takes memory as larger
// and larger steps come.
func (t *Tape) Reserve(d Demand) {
	for i, a := range t.arenas() {
		a.reserve(t.gpu, d[i])
	}
}

func (t *Tape) header() *Tensor {
	if t.used == len(t.headers) {
		t.headers = append(t.headers, new(Tensor))
	}
	x := t.headers[t.used]
	t.used++
	return x
}

// opPool keeps the records of one operator type from step to step.
type opPool interface{ rewind() }

type pool[T any] struct {
	items []*T
	used  int
}

func (p *pool[T]) rewind() { p.used = 0 }

// NewOp returns a zeroed *T that the tape keeps and reuses after Reset, so that
// recording an operator allocates nothing in steady state.
func NewOp[T any](t *Tape) *T {
	key := any((*T)(nil))
	p, ok := t.pools[key].(*pool[T])
	if !ok {
		p = new(pool[T])
		t.pools[key] = p
	}
	if p.used == len(p.items) {
		p.items = append(p.items, new(T))
	}
	item := p.items[p.used]
	p.used++
	var zero T
	*item = zero
	return item
}

func poison[F float32 | float64](s []F) {
	nan := F(math.NaN())
	for i := range s {
		s[i] = nan
	}
}
