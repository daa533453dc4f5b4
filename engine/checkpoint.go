package engine

import "fmt"

// Checkpointing says which of a layer's results are kept for its backward pass. The
// others are made again there, by running their operators once more: less memory
// for more time, and the same bits ("Training Deep Nets with Sublinear Memory Cost",
// arXiv 1604.06174).
type Checkpointing uint8

// The modes of checkpointing.
const (
	// KeepAll makes nothing again.
	KeepAll Checkpointing = iota
	// KeepDear makes the results of cheap operators again (Tape.NewCheap): norms,
	// activations, rotations, convolutions. Products, attention and delta rules run
	// once.
	KeepDear
	// KeepOutput keeps what the layer returns and makes everything else again.
	KeepOutput
)

var checkpointingNames = [...]string{KeepAll: "none", KeepDear: "selective", KeepOutput: "full"}

// ParseCheckpointing reads a mode's name: none, selective or full.
func ParseCheckpointing(name string) (Checkpointing, error) {
	for c, n := range checkpointingNames {
		if n == name {
			return Checkpointing(c), nil
		}
	}
	return 0, fmt.Errorf("checkpointing %q: choose one of %q", name, checkpointingNames)
}

// String returns the mode's name.
func (c Checkpointing) String() string { return checkpointingNames[c] }

// layer is a stretch of the tape's calls, [from, to), whose memory ends with it.
type layer struct{ from, to int }

// place is where a tape is in relation to its layers.
type place uint8

const (
	outside place = iota
	forwardInLayer
	backwardInLayer
)

// Layer runs one layer of a network: f calls its operators and returns its result,
// a whole tensor and not a view. What else f makes serves this layer alone: the
// gradients of it go with the layer's backward pass, and so do, as the tape's
// Checkpointing says, the tensors themselves, to be made again. On a tape for
// Inference only the result outlives f, and that only until the second Layer after
// this one. Layers do not nest.
func (t *Tape) Layer(f func() *Tensor) *Tensor {
	if t.place != outside {
		panic("engine: a layer within a layer")
	}
	if t.Inference { // the last layer's result stays where it is
		t.brief, t.previous = t.previous, t.brief
	}
	t.brief.reset()
	from := len(t.calls)
	t.place = forwardInLayer
	y := f()
	t.place = outside
	if !t.Inference {
		t.keep(y)
		t.layers = append(t.layers, layer{from, len(t.calls)})
	}
	return y
}

// keep makes a layer's result outlive the layer.
func (t *Tape) keep(y *Tensor) {
	if y.base != nil {
		panic("engine: a layer's result must be a whole tensor, not a view")
	}
	if y.brief {
		switch {
		case t.CPU():
			y.F32 = append(t.values.float32s(len(y.F32))[:0], y.F32...)
		case t.Reference():
			y.F64 = append(t.values.float64s(len(y.F64))[:0], y.F64...)
		case t.gpu != nil:
			from := y.at
			y.at = t.values.gpuBytes(t.gpu, y.storage())
			t.gpu.copy(y.at, from, y.storage())
		default:
			t.values.count(y.Rows * y.Cols)
		}
	}
	y.inner, y.brief = false, false
}

// isBrief reports whether a new result goes with the layer that is running.
func (t *Tape) isBrief(cheap bool) bool {
	return t.Inference || t.Checkpointing == KeepOutput || t.Checkpointing == KeepDear && cheap
}

// backwardLayer runs a layer backwards, after making again what was not kept.
func (t *Tape) backwardLayer(l layer) {
	t.innerGrads.reset()
	if t.Poison {
		t.brief.poison(t.gpu)
	}
	t.place = backwardInLayer
	for _, c := range t.calls[l.from:l.to] {
		if t.isBrief(c.cheap) {
			t.forward(c.op, Replay)
		}
	}
	t.backward(l.from, l.to)
	t.place = outside
}
