package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/gradnorm"
	"caper/kernels/marginloss"
	"caper/kernels/optest"
	"caper/model/qwen35"
)

// A reward model on a GPU, emulated or real, trains as on the processor: loss, gradient and
// what AdamW makes of them, over several steps on a tree of shared prompts.
func TestTrainingOnCUDA(t *testing.T) {
	for _, family := range families {
		for _, mode := range []engine.Checkpointing{engine.KeepAll, engine.KeepDear} {
			t.Run(family+"/"+mode.String(), func(t *testing.T) {
				host := newModel(t, rewarding(family), engine.CPU(2))
				condition(host)
				gpu, err := host.CopyTo(optest.CUDA(t))
				if err != nil {
					t.Fatal(err)
				}
				copyWeights(host, gpu) // as they were rounded to bf16
				want, got := newRewardTrainer(host, mode), newRewardTrainer(gpu, mode)
				defer got.tape.Close()
				for step := range 4 {
					wantLoss, gotLoss := want.gradient(), got.gradient()
					if err := engine.Wait(gpu.Device()); err != nil {
						t.Fatal(err)
					}
					t.Logf("step %d: loss %.4f, on the processor %.4f", step, gotLoss, wantLoss)
					if !(math.Abs(gotLoss-wantLoss) <= 1e-2) {
						t.Errorf("step %d: loss %g, on the processor %g", step, gotLoss, wantLoss)
					}
					if step == 0 {
						compareGradients(t, gpu, host)
					}
					want.update()
					got.update()
				}
			})
		}
	}
}

// rewarding is a small reward model with heads of 16.
func rewarding(family string) Config {
	c := small(family)
	c.Reward = true
	if text, ok := c.Text.(qwen35.Config); ok {
		text.HiddenSize, text.KeyDim, text.ValueDim = 32, 16, 16
		c.Text = text
	}
	return c
}

// condition gives weights the sizes that training starts with (train, freshen): embeddings
// that outweigh what layers add, and delta nets that keep their state over many tokens. A
// narrow model with equal weights everywhere multiplies rounding from layer to layer on any
// machine: one that forgets all at each token reads q k of that token, often nearly 0, and
// the norm behind enlarges it.
func condition(m *Model) {
	for _, p := range m.Params() {
		factor := 1.0
		switch {
		case p == m.Embedding:
			factor = 5
		case strings.HasSuffix(p.Name, "o_proj.weight"), strings.HasSuffix(p.Name, "out_proj.weight"), strings.HasSuffix(p.Name, "down_proj.weight"):
			factor = 0.25
		case strings.HasSuffix(p.Name, "dt_bias"):
			p.Fill(func(_, head int) float64 { return -4 - float64(head)/2 })
		}
		for i, v := range p.Values() {
			p.Set(i/p.Cols, i%p.Cols, factor*v)
		}
	}
}

// rewardTrainer trains a reward model to prefer one half of the tokens of a few sequences to
// the other.
type rewardTrainer struct {
	model *Model
	tape  *engine.Tape
	state *adamw.State
	tree  engine.Tree
	rows  []int32
	pairs []marginloss.Pair
}

func newRewardTrainer(m *Model, mode engine.Checkpointing) *rewardTrainer {
	r := &rewardTrainer{model: m, tape: engine.NewTape(m.Device()), state: adamw.NewState(m.Params(), m.Decays())}
	r.tape.Poison, r.tape.Checkpointing = true, mode
	for _, path := range r.tree.Pack(branches(1, 40)) {
		r.rows = append(r.rows, path[len(path)-1], path[len(path)/2])
	}
	for i := 0; i < len(r.rows); i += 2 {
		r.pairs = append(r.pairs, marginloss.Pair{Chosen: int32(i), Rejected: int32(i + 1), Margin: 0.1, Weight: 1})
	}
	return r
}

// gradient runs the model forward and backward, and returns the loss.
func (r *rewardTrainer) gradient() float64 {
	zeroGrads(r.model)
	r.tape.Reset()
	loss := marginloss.Forward(r.tape, r.model.Scores(r.tape, &r.tree, r.rows), r.pairs, marginloss.Options{Offset: 1, Center: 0.01})
	r.tape.SeedRows(loss, []float32{1})
	var value [1]float32
	r.tape.Fetch(value[:], loss)
	r.tape.Backward()
	engine.Wait(r.model.Device())
	return float64(value[0])
}

func (r *rewardTrainer) update() {
	norm := gradnorm.Norm(r.model.Device(), r.model.Params())
	adamw.Step(r.model.Device(), r.model.Params(), r.state, adamw.Options{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}, min(1, 1/norm))
}

// compareGradients compares the direction and length of whole gradients, and of each weight's:
// those of small weights, sums that nearly cancel, lose more to rounding.
func compareGradients(t *testing.T, got, want *Model) {
	t.Helper()
	var whole [3]float64
	lowest, at := 1.0, ""
	for i, p := range want.Params() {
		products := dots(values(got.Params()[i].Grad), values(p.Grad))
		for k, v := range products {
			whole[k] += v
		}
		if c := cosine(products); !(c >= lowest) {
			lowest, at = c, p.Name
		}
	}
	t.Logf("gradients: cosine %.6f, lengths %.6g and %.6g; lowest cosine of a weight's %.5f, of %s", cosine(whole), math.Sqrt(whole[0]), math.Sqrt(whole[1]), lowest, at)
	if !(cosine(whole) > 0.999) || !(lowest > 0.98) {
		t.Errorf("gradients: cosine %.6f, of %s alone %.6f", cosine(whole), at, lowest)
	}
}

// dots returns a a, b b and a b.
func dots(a, b []float32) (d [3]float64) {
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		d[0], d[1], d[2] = d[0]+x*x, d[1]+y*y, d[2]+x*y
	}
	return d
}

func cosine(d [3]float64) float64 { return d[2] / math.Sqrt(d[0]*d[1]) }

func values(x *engine.Tensor) []float32 {
	v := make([]float32, x.Rows*x.Cols)
	x.Read(v)
	return v
}

func copyWeights(to, from *Model) {
	for i, p := range from.Params() {
		to.Params()[i].Write(values(p.Tensor))
	}
}

// Steps of one shape are replayed as graphs, with the bits that they have when every kernel
// is launched by itself, whatever their tokens are.
func TestCUDAStepsAreReplayed(t *testing.T) {
	host := newModel(t, rewarding("qwen35"), engine.CPU(2))
	condition(host)
	gpu, err := host.CopyTo(optest.CUDA(t))
	if err != nil {
		t.Fatal(err)
	}
	device := engine.GPUOf(gpu.Device())
	r := newRewardTrainer(gpu, engine.KeepAll)
	defer r.tape.Close()
	_, launchedBefore, _ := device.Replays()
	type step struct {
		loss float64
		grad []float32
	}
	first, tokens := map[bool]step{}, slices.Clone(r.tree.Tokens)
	for i := range 14 {
		other := i%2 == 1 // every other step has other tokens, in a tree of the same shape
		copy(r.tree.Tokens, tokens)
		if other {
			slices.Reverse(r.tree.Tokens)
		}
		got := step{loss: r.gradient()}
		for _, p := range gpu.Params() {
			got.grad = append(got.grad, values(p.Grad)...)
		}
		if err := engine.Wait(device); err != nil {
			t.Fatal(err)
		}
		want, seen := first[other]
		if !seen {
			first[other] = got
			continue
		}
		if got.loss != want.loss || !slices.Equal(got.grad, want.grad) {
			t.Errorf("step %d: loss %g, eagerly %g; gradients equal: %v", i, got.loss, want.loss, slices.Equal(got.grad, want.grad))
		}
	}
	if first[true].loss == first[false].loss {
		t.Error("other tokens have the same loss: the test tests less than it says")
	}
	graphs, launched, refused := device.Replays()
	if launched -= launchedBefore; refused != nil || graphs == 0 || launched < 8 {
		t.Errorf("%d graphs, %d launches of them (%v) in 14 steps", graphs, launched, refused)
	}
}
