// Package kernels measures training steps of the published models' shapes with random
// weights and tokens, on any device: every operator in every phase, and whole steps.
package kernels

import (
	"context"
	"fmt"
	"time"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/gradnorm"
	"caper/kernels/logprob"
	"caper/kernels/marginloss"
	"caper/model"
	"caper/model/decoder"
	"caper/model/qwen3"
	"caper/model/qwen35"
	"caper/train/plan"
)

// Options say what is measured.
type Options struct {
	Device engine.Device
	Model  string // a published size: "0.8B", "9B", "qwen3-8B"
	Layers int    // of it, from the first; 0: all. Four of Qwen3.5 hold each kind
	Scale  int    // by which its widths and its vocabulary are divided, but for heads
	// Samples sequences of Answer tokens share a prompt of Prompt tokens.
	Prompt, Answer, Samples int
	Repeats                 int
	// Checkpointing is that of whole steps; operators are measured without.
	Checkpointing engine.Checkpointing
}

// Report is what was measured.
type Report struct {
	Device    string     `json:"device"`
	Model     string     `json:"model"`
	Layers    int        `json:"layers"`
	Weights   int        `json:"weights"`
	Copy      float64    `json:"copy_bytes_per_second,omitempty"` // ceilings, of a GPU
	Product   float64    `json:"product_flops,omitempty"`
	Operators []Operator `json:"operators"`
	Shared    Step       `json:"shared_prompt"`
	Separate  Step       `json:"separate_prompts"`
}

// Step is a whole training step: forward, backward, norm and update.
type Step struct {
	Rows    int     `json:"rows"`   // that are computed
	Tokens  int     `json:"tokens"` // of all samples
	Seconds float64 `json:"seconds"`
	FLOPs   float64 `json:"flops"`        // of products, without what is made again
	Memory  int     `json:"memory_bytes"` // of the tape
}

// Measure runs the benchmark.
func Measure(ctx context.Context, o Options) (*Report, error) {
	config, err := shape(o.Model, o.Layers, o.Scale)
	if err != nil {
		return nil, err
	}
	config.Reward = true
	m, err := model.New(config, o.Device, 1)
	if err != nil {
		return nil, err
	}
	r := &Report{Device: o.Device.Name(), Model: o.Model, Layers: config.Text.Shared().Layers}
	for _, p := range m.Params() {
		r.Weights += p.Rows * p.Cols
	}
	if g := engine.GPUOf(o.Device); g != nil && o.Scale == 1 {
		if r.Copy, r.Product, err = g.Ceilings(); err != nil {
			return nil, err
		}
	}
	t := newTask(m, o)
	flops := map[bool]float64{}
	for _, shared := range []bool{true, false} {
		t.pack(shared)
		sums := &operators{}
		if err := t.observe(ctx, sums, o.Repeats); err != nil {
			return nil, err
		}
		flops[shared] = sums.flops / float64(o.Repeats)
		if shared {
			r.Operators = sums.table(o.Repeats)
		}
	}
	for _, shared := range []bool{true, false} {
		t.pack(shared)
		s, err := t.whole(ctx, o)
		if err != nil {
			return nil, err
		}
		s.FLOPs = flops[shared]
		if shared {
			r.Shared = s
		} else {
			r.Separate = s
		}
	}
	return r, nil
}

// shape returns the configuration of a published model, cut to its first layers, its widths
// divided by scale.
func shape(name string, layers, scale int) (model.Config, error) {
	c, err := plan.Named(name)
	if err != nil {
		return c, err
	}
	all := c.Text.Shared().Layers
	if layers == 0 {
		layers = all
	}
	if layers < 0 || layers > all {
		return c, fmt.Errorf("%d layers: %s has %d", layers, name, all)
	}
	switch text := c.Text.(type) {
	case qwen35.Config:
		text.Layers, text.LayerTypes = layers, text.LayerTypes[:layers]
		narrow(&text.Config, scale)
		c.Text = text
	case qwen3.Config:
		text.Layers, text.LayerTypes = layers, text.LayerTypes[:layers]
		narrow(&text.Config, scale)
		c.Text = text
	}
	return c, nil
}

func narrow(c *decoder.Config, scale int) {
	c.HiddenSize, c.IntermediateSize, c.VocabSize = c.HiddenSize/scale, c.IntermediateSize/scale, c.VocabSize/scale
}

// task is a reward model with the next-token loss beside: a step has every operator.
type task struct {
	model         *model.Model
	state         *adamw.State
	sequences     [][]int32
	prompt        int
	tree          engine.Tree
	scored        []int32
	pairs         []marginloss.Pair
	rows, targets []int32
	seeds         []float32
}

func newTask(m *model.Model, o Options) *task {
	t := &task{model: m, prompt: o.Prompt, state: adamw.NewState(m.Params(), m.Decays())}
	r := engine.Random(1, "tokens", 0, 0)
	draw := func(n int) []int32 {
		s := make([]int32, n)
		for i := range s {
			s[i] = r.Int32N(int32(m.Config.Text.Shared().VocabSize))
		}
		return s
	}
	prompt := draw(o.Prompt)
	for range o.Samples {
		t.sequences = append(t.sequences, append(prompt[:len(prompt):len(prompt)], draw(o.Answer)...))
	}
	return t
}

// pack lays the samples out: as one tree, or each with a prompt of its own.
func (t *task) pack(shared bool) {
	t.tree.Reset()
	t.scored, t.pairs, t.rows, t.targets, t.seeds = nil, nil, nil, nil, nil
	var paths [][]int32
	if shared {
		paths = t.tree.Pack(t.sequences)
	} else {
		for _, s := range t.sequences {
			start := int32(t.tree.Rows())
			t.tree.AddSegment(-1, s)
			path := make([]int32, len(s))
			for i := range path {
				path[i] = start + int32(i)
			}
			paths = append(paths, path)
		}
	}
	for i, path := range paths {
		t.scored = append(t.scored, path[len(path)-1])
		if i%2 == 1 {
			t.pairs = append(t.pairs, marginloss.Pair{Chosen: int32(i - 1), Rejected: int32(i), Margin: 0.5, Weight: 1})
		}
		for p := t.prompt; p < len(path); p++ {
			t.rows, t.targets = append(t.rows, path[p-1]), append(t.targets, t.sequences[i][p])
		}
	}
	for range t.rows {
		t.seeds = append(t.seeds, -1/float32(len(t.rows)))
	}
}

// gradient runs a step up to its gradients.
func (t *task) gradient(tape *engine.Tape) {
	for _, p := range t.model.Params() {
		p.ZeroGrad()
	}
	tape.Reset()
	hidden := t.model.Backbone.Hidden(tape, &t.tree)
	loss := marginloss.Forward(tape, t.model.ScoresOf(tape, hidden, t.scored), t.pairs, marginloss.Options{Offset: 1})
	tape.SeedRows(loss, []float32{1})
	tape.SeedRows(logprob.Forward(tape, hidden, t.model.Embedding.Tensor, t.rows, t.targets), t.seeds)
	tape.Backward()
}

func (t *task) update() {
	dev := t.model.Device()
	norm := gradnorm.Norm(dev, t.model.Params())
	adamw.Step(dev, t.model.Params(), t.state, adamw.Options{LR: 1e-6, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, min(1, 1/norm))
}

// observe measures the operators of some steps, after one that warms up.
func (t *task) observe(ctx context.Context, sums *operators, repeats int) error {
	dev := t.model.Device()
	for i := range repeats + 1 {
		tape := engine.NewTape(engine.Observed(dev, sums))
		t.gradient(tape)
		err := engine.Wait(dev)
		tape.Close()
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		started := time.Now()
		gradnorm.Norm(dev, t.model.Params())
		sums.add("gradnorm", engine.Update, time.Since(started), 0, float64(gradientBytes(t.model)))
		started = time.Now()
		adamw.Step(dev, t.model.Params(), t.state, adamw.Options{LR: 1e-6, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, 1)
		err = engine.Wait(dev)
		sums.add("adamw", engine.Update, time.Since(started), 0, float64(updateBytes(t.model)))
		if err != nil {
			return err
		}
		if i == 0 {
			sums.reset()
		}
	}
	return nil
}

func gradientBytes(m *model.Model) (n int) {
	for _, p := range m.Params() {
		n += p.Grad.Bytes()
	}
	return n
}

// updateBytes is what AdamW reads and writes: gradient, two means and the weight, of which it
// keeps a copy in float32 where the model computes with less.
func updateBytes(m *model.Model) (n int) {
	for _, p := range m.Params() {
		elements := p.Rows * p.Cols
		n += 28 * elements
		if p.Bytes() < 4*elements {
			n += 2 * elements
		}
	}
	return n
}

// whole times steps that nobody observes: the median.
func (t *task) whole(ctx context.Context, o Options) (Step, error) {
	dev := t.model.Device()
	tape := engine.NewTape(dev)
	defer tape.Close()
	tape.Checkpointing = o.Checkpointing
	s := Step{Rows: t.tree.Rows()}
	for _, q := range t.sequences {
		s.Tokens += len(q)
	}
	var seconds []float64
	for i := range o.Repeats + 1 {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		started := time.Now()
		t.gradient(tape)
		t.update()
		if err := engine.Wait(dev); err != nil {
			return s, err
		}
		if i > 0 {
			seconds = append(seconds, time.Since(started).Seconds())
		}
	}
	s.Seconds, s.Memory = median(seconds), tape.Bytes()
	return s, nil
}
