package plan

import (
	"slices"
	"strings"
	"testing"

	"caper/engine"
	"caper/kernels/logprob"
	"caper/model"
	"caper/model/qwen35"

	"pgregory.net/rapid"
)

// small draws a Qwen3.5 model.
func small(t *rapid.T) model.Config {
	c := qwen35.Defaults()
	c.VocabSize = rapid.IntRange(2, 50).Draw(t, "vocabulary")
	c.HiddenSize = rapid.IntRange(1, 20).Draw(t, "hidden")
	c.IntermediateSize = rapid.IntRange(1, 30).Draw(t, "intermediate")
	c.Layers = rapid.IntRange(1, 5).Draw(t, "layers")
	c.LayerTypes = qwen35.LayerTypes(c.Layers, rapid.IntRange(1, 3).Draw(t, "interval"))
	c.KVHeads = rapid.IntRange(1, 2).Draw(t, "kv heads")
	c.Heads = c.KVHeads * rapid.IntRange(1, 2).Draw(t, "group")
	c.HeadDim = 8 * rapid.IntRange(1, 2).Draw(t, "head dim")
	c.KeyHeads = rapid.IntRange(1, 2).Draw(t, "key heads")
	c.ValueHeads = c.KeyHeads * rapid.IntRange(1, 2).Draw(t, "value heads")
	c.KeyDim, c.ValueDim = rapid.IntRange(1, 9).Draw(t, "key dim"), rapid.IntRange(1, 9).Draw(t, "value dim")
	c.Tied = rapid.Bool().Draw(t, "tied")
	return model.Config{Text: c, Reward: rapid.Bool().Draw(t, "reward")}
}

// drawMode draws a mode of checkpointing.
func drawMode(t *rapid.T) engine.Checkpointing {
	return rapid.SampledFrom([]engine.Checkpointing{engine.KeepAll, engine.KeepDear, engine.KeepOutput}).Draw(t, "mode")
}

// The walk's operations are the closed formula's: two times the product of the three
// sizes of each matrix product, one product forward and two backward; and of a closed
// form for attention and delta rule. Its parameters are the plan's.
func TestWalkMatchesClosedFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := small(t)
		b := Batch{rapid.IntRange(1, 3).Draw(t, "sequences"), rapid.IntRange(2, 40).Draw(t, "length")}
		mode := drawMode(t)
		w, err := Step(c, b, nil, mode)
		if err != nil {
			t.Fatal(err)
		}
		text := c.Text.(qwen35.Config)
		tokens := float64(b.Tokens())
		products := 0.0
		for _, p := range c.Weights() {
			if len(p.Shape) == 2 && strings.Contains(p.Name, "proj") {
				products += 2 * tokens * float64(p.Shape[0]) * float64(p.Shape[1])
			}
		}
		head := 2 * float64(b.Sequences) * float64(text.HiddenSize) // a score at each end
		if !c.Reward {
			head = 2 * (tokens - float64(b.Sequences)) * float64(text.HiddenSize) * float64(text.VocabSize)
		}
		full, delta := 0.0, 0.0
		for _, kind := range text.LayerTypes {
			if kind == "full_attention" {
				pairs := float64(b.Sequences) * float64(b.Length) * float64(b.Length+1) / 2
				full += 4 * pairs * float64(text.Heads*text.HeadDim)
			} else {
				k, v := float64(text.KeyDim), float64(text.ValueDim)
				delta += tokens * float64(text.ValueHeads) * (6*k*v + 4*64*(k+v))
			}
		}
		if want := products + head + full + delta; w.Forward.FLOPs != want {
			t.Errorf("forward %g, want %g", w.Forward.FLOPs, want)
		}
		replayed := 0.0
		if mode == engine.KeepOutput {
			replayed = products + full + delta // the layers
		}
		if w.Replay.FLOPs != replayed {
			t.Errorf("replay %g, want %g", w.Replay.FLOPs, replayed)
		}
		kernels := 0.0
		for _, l := range w.Launches {
			if l.Phase == "backward" && l.Operator != "deltarule" {
				kernels += l.FLOPs - l.Again
			}
		}
		if want := 2 * (products + head + full); kernels != want {
			t.Errorf("backward without delta rule %g, want %g", kernels, want)
		}
		if n := Count(c).Parameters; w.Parameters != n || w.Trained != n {
			t.Errorf("walk has %d parameters, %d trained, plan %d", w.Parameters, w.Trained, n)
		}
	})
}

// recorder keeps what launches look like.
type recorder []string

func (r *recorder) Observe(l *engine.Launch) {
	*r = append(*r, strings.Join([]string{l.Operator, l.Phase.String(), l.Reads.String(), l.Writes.String()}, "|"))
}

// A dry run lists what the step really launches, in order and with its shapes.
func TestWalkListsTheRealLaunches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := small(t)
		c.Reward = false
		b := Batch{rapid.IntRange(1, 2).Draw(t, "sequences"), rapid.IntRange(2, 9).Draw(t, "length")}
		mode := drawMode(t)
		w, err := Step(c, b, nil, mode)
		if err != nil {
			t.Fatal(err)
		}
		var walked []string
		for _, l := range w.Launches {
			if l.Phase != "update" {
				walked = append(walked, strings.Join([]string{l.Operator, l.Phase, l.Reads, l.Writes}, "|"))
			}
		}
		var real recorder
		dev := engine.Observed(engine.CPU(1), &real)
		m, err := model.New(c, dev, 1)
		if err != nil {
			t.Fatal(err)
		}
		var tree engine.Tree
		var rows, targets []int32
		for range b.Sequences {
			s := tree.AddSegment(-1, make([]int32, b.Length))
			for i := range tree.Len[s] - 1 {
				rows, targets = append(rows, tree.Start[s]+i), append(targets, 0)
			}
		}
		tape := engine.NewTape(dev)
		tape.Checkpointing = mode
		tape.Seed(logprob.Forward(tape, m.Backbone.Hidden(tape, &tree), m.Head.Tensor, rows, targets), 0, 1)
		tape.Backward()
		for i := range min(len(real), len(walked)) {
			if real[i] != walked[i] {
				t.Fatalf("launch %d is %s, walked as %s", i, real[i], walked[i])
			}
		}
		if !slices.Equal(walked, real) {
			t.Fatalf("%d launches, walked as %d", len(real), len(walked))
		}
	})
}

// span by hand: an activation lives from the launch that writes it to the last that
// reads it, and once more from where it is made again.
func TestLivesOfActivations(t *testing.T) {
	dev := engine.Shapes(1)
	x, y, z := engine.NewTape(dev).New(1, 100), engine.NewTape(dev).New(1, 10), engine.NewTape(dev).New(1, 1)
	weight := engine.NewFrozen(dev, "w", 1, 1000).Tensor
	w := &walker{launches: []engine.Launch{
		{Phase: engine.Forward, Reads: engine.Tensors{weight}, Writes: engine.Tensors{x}},
		{Phase: engine.Forward, Reads: engine.Tensors{x}, Writes: engine.Tensors{y}},
		{Phase: engine.Forward, Reads: engine.Tensors{y}, Writes: engine.Tensors{z}},
		{Phase: engine.Replay, Reads: engine.Tensors{x}, Writes: engine.Tensors{y}},
		{Phase: engine.Backward, Reads: engine.Tensors{y}, Writes: engine.Tensors{x}},
	}}
	got := w.walk()
	var live []float64
	for _, l := range got.Launches {
		live = append(live, l.Live)
	}
	if want := []float64{100, 110, 111, 110, 110}; !slices.Equal(live, want) {
		t.Errorf("alive %v, want %v", live, want)
	}
	if got.Kept != 100 || got.Peak != 111 {
		t.Errorf("kept %g, at most %g, want 100, 111", got.Kept, got.Peak)
	}
}
