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
	"caper/model/qwen3"
	"caper/model/qwen35"
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
	Launches []Launch `json:"launches"`
	// Forward, Backward and Update sum up the launches of the three phases.
	Forward  Work `json:"forward"`
	Backward Work `json:"backward"`
	Update   Work `json:"update"`
	// Kept is what the forward pass leaves for the backward pass, in bytes; Light is
	// the part of it that is cheap to make again. Peak is the most that lives at once,
	// gradients of activations included, if everything is freed after its last use.
	Kept  float64 `json:"kept_bytes"`
	Light float64 `json:"light_bytes"`
	Peak  float64 `json:"peak_bytes"`
	// Parameters are those of the model and its adapter, Trained those with a gradient.
	Parameters int `json:"parameters"`
	Trained    int `json:"trained_parameters"`
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

// Step walks a training step of a model of configuration c. With an adapter, the
// model's own weights are frozen. A reward model is scored at the end of each sequence; a
// language model predicts every token but the first.
func Step(c model.Config, b Batch, adapter *lora.Config) (*Walk, error) {
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
	live := w.live()
	for i := range w.launches {
		l := &w.launches[i]
		work := Work{l.FLOPs, l.Again, l.Bytes()}
		sum := [...]*Work{&r.Forward, &r.Backward, &r.Update}[l.Phase]
		sum.FLOPs += work.FLOPs
		sum.Again += work.Again
		sum.Bytes += work.Bytes
		r.Launches = append(r.Launches, Launch{l.Operator, l.Phase.String(), l.Reads.String(), l.Writes.String(), work, live[i]})
	}
	r.Peak = slices.Max(live)
	r.Kept, r.Light = w.kept()
	return r
}

// live returns, for each launch, the bytes of activations and their gradients that are
// alive while it runs: touched by it or before it, and by it or after it.
func (w *walker) live() []float64 {
	type span struct{ first, last int }
	spans := map[*engine.Tensor]span{}
	for i := range w.launches {
		l := &w.launches[i]
		for _, x := range slices.Concat(l.Reads, l.Writes) {
			if x = x.Whole(); x.Lasting() {
				continue
			}
			if s, ok := spans[x]; ok {
				spans[x] = span{s.first, i}
			} else {
				spans[x] = span{i, i}
			}
		}
	}
	born, dead := make([]float64, len(w.launches)), make([]float64, len(w.launches)+1)
	for x, s := range spans {
		born[s.first] += float64(x.Bytes())
		dead[s.last+1] += float64(x.Bytes())
	}
	live := make([]float64, len(w.launches))
	now := 0.0
	for i := range live {
		now += born[i] - dead[i]
		live[i] = now
	}
	return live
}

// kept returns the bytes that forward launches save, and those of them that light
// operators wrote.
func (w *walker) kept() (all, light float64) {
	cheap := map[*engine.Tensor]bool{}
	seen := map[*engine.Tensor]bool{}
	for i := range w.launches {
		l := &w.launches[i]
		for _, x := range l.Writes {
			if l.Light && l.Phase == engine.Forward {
				cheap[x.Whole()] = true
			}
		}
		for _, x := range l.Saves {
			if x = x.Whole(); !x.Lasting() && !seen[x] {
				seen[x] = true
				all += float64(x.Bytes())
			}
		}
	}
	for x := range seen {
		if cheap[x] {
			light += float64(x.Bytes())
		}
	}
	return all, light
}

// oneLayer returns c with a single layer of the given kind.
func oneLayer(c model.Config, kind string) model.Config {
	switch text := c.Text.(type) {
	case qwen35.Config:
		text.Layers, text.LayerTypes = 1, []string{kind}
		c.Text = text
	case qwen3.Config:
		text.Layers, text.LayerTypes = 1, []string{kind}
		c.Text = text
	}
	return c
}
