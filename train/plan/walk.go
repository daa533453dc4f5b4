package plan

import (
	"slices"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/gradnorm"
	"caper/kernels/logprob"
	"caper/kernels/scorehead"
	"caper/model"
	"caper/model/lora"
)

// Batch is what a walked step computes: so many sequences of the same length.
type Batch struct {
	Sequences, Length int
}

// Tokens returns the batch's size.
func (b Batch) Tokens() int { return b.Sequences * b.Length }

// elementBytes is the size of an activation, a weight and a gradient in a walk: bf16.
const elementBytes = 2

// Walk is a whole training step, walked on a device of shapes: forward, backward and
// the optimiser, launch by launch.
type Walk struct {
	// Forward, Replay (what checkpointing makes again), Backward and Update sum up the
	// launches of the four phases.
	Forward  Work `json:"forward"`
	Replay   Work `json:"replay"`
	Backward Work `json:"backward"`
	Update   Work `json:"update"`
	// Kept are the bytes of activations between forward and backward pass, Peak the
	// most that lives at once, gradients of activations included, when each is freed
	// after its last use.
	Kept float64 `json:"kept_bytes"`
	Peak float64 `json:"peak_bytes"`
	// Parameters are those of the model and its adapter, Trained those with a gradient.
	Parameters int      `json:"parameters"`
	Trained    int      `json:"trained_parameters"`
	Launches   []Launch `json:"launches"`
}

// Work is operations, the share of them that repeats others, and bytes moved.
type Work struct {
	FLOPs float64 `json:"flops"`
	Again float64 `json:"again_flops"`
	Bytes float64 `json:"bytes"`
}

// Launch is an operator's call in a walk.
type Launch struct {
	Operator string `json:"operator"`
	Phase    string `json:"phase"`
	Reads    string `json:"reads"` // shapes
	Writes   string `json:"writes"`
	Work
	Live float64 `json:"live_bytes"` // activations and their gradients while it runs
}

// Step walks a training step of a model of configuration c under a mode of
// checkpointing. With an adapter, the model's own weights are frozen. A reward model is scored at the end of each sequence; a
// language model predicts every token but the first.
func Step(c model.Config, b Batch, adapter *lora.Config, mode engine.Checkpointing) (*Walk, error) {
	w := &walker{}
	dev := engine.Observed(engine.Shapes(elementBytes), w)
	m, err := model.OnShapes(c, dev, adapter != nil)
	if err != nil {
		return nil, err
	}
	if adapter != nil {
		if err := m.AddAdapter(*adapter, ".", 1); err != nil {
			return nil, err
		}
	}
	tape := engine.NewTape(dev)
	tape.Checkpointing = mode
	var tree engine.Tree
	var rows, last, targets []int32
	for range b.Sequences {
		first := int32(tree.Rows())
		tree.AddSegment(-1, make([]int32, b.Length))
		for r := first; r < int32(tree.Rows())-1; r++ {
			rows, targets = append(rows, r), append(targets, 0)
		}
		last = append(last, int32(tree.Rows())-1)
	}
	hidden := m.Backbone.Hidden(tape, &tree)
	if c.Reward {
		seed(tape, scorehead.Forward(tape, hidden, m.Score.Tensor, last))
	} else {
		seed(tape, logprob.Forward(tape, hidden, m.Head.Tensor, rows, targets))
	}
	tape.Backward()
	params := m.Trainable()
	gradnorm.Norm(dev, params)
	adamw.Step(dev, params, adamw.NewState(params, m.Decays()), adamw.Options{}, 1)
	walk := w.walk()
	walk.Parameters, walk.Trained = count(m.Params()), count(params)
	return walk, nil
}

func count(params []*engine.Param) int {
	n := 0
	for _, p := range params {
		n += p.Rows * p.Cols
	}
	return n
}

func seed(t *engine.Tape, x *engine.Tensor) {
	if x.Rows > 0 {
		t.Seed(x, 0, 1)
	}
}

// walker observes a step and keeps what it touches.
type walker struct{ launches []engine.Launch }

func (w *walker) Observe(l *engine.Launch) { w.launches = append(w.launches, *l) }

func (w *walker) walk() *Walk {
	r := &Walk{}
	spans := w.spans()
	live := w.live(spans)
	for i := range w.launches {
		l := &w.launches[i]
		work := Work{l.FLOPs, l.Again, l.Bytes()}
		sum := map[engine.Phase]*Work{engine.Forward: &r.Forward, engine.Replay: &r.Replay, engine.Backward: &r.Backward, engine.Update: &r.Update}[l.Phase]
		sum.FLOPs += work.FLOPs
		sum.Again += work.Again
		sum.Bytes += work.Bytes
		r.Launches = append(r.Launches, Launch{l.Operator, l.Phase.String(), l.Reads.String(), l.Writes.String(), work, live[i]})
	}
	r.Peak = slices.Max(live)
	turn := slices.IndexFunc(w.launches, func(l engine.Launch) bool { return l.Phase != engine.Forward })
	for _, s := range spans {
		if s.first < turn && s.last >= turn {
			r.Kept += s.bytes
		}
	}
	return r
}

// span is the life of an activation or its gradient, from one launch to another.
type span struct {
	first, last int
	bytes       float64
}

// spans lists the lives of everything that launches touch and that does not last across
// steps: from its first launch to its last; but what is made again in a replay lives
// twice.
func (w *walker) spans() []span {
	var spans []span
	current := map[*engine.Tensor]int{}
	for i := range w.launches {
		l := &w.launches[i]
		if l.Phase == engine.Replay {
			for _, x := range l.Writes {
				delete(current, x.Whole())
			}
		}
		for _, x := range slices.Concat(l.Reads, l.Writes) {
			if x = x.Whole(); x.Lasting() {
				continue
			}
			if _, ok := current[x]; !ok {
				current[x] = len(spans)
				spans = append(spans, span{first: i, bytes: float64(x.Bytes())})
			}
			spans[current[x]].last = i
		}
	}
	return spans
}

// live returns the bytes that are alive during each launch.
func (w *walker) live(spans []span) []float64 {
	change := make([]float64, len(w.launches)+1)
	for _, s := range spans {
		change[s.first] += s.bytes
		change[s.last+1] -= s.bytes
	}
	live := make([]float64, len(w.launches))
	now := 0.0
	for i := range live {
		now += change[i]
		live[i] = now
	}
	return live
}
