package model

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/gradnorm"
	"caper/kernels/logprob"
	"caper/model/qwen35"
)

// stepper trains a model on sequences: what one optimiser step of a training run does,
// from packing to update.
type stepper struct {
	model         *Model
	params        []*engine.Param
	moments       *adamw.State
	tape          *engine.Tape
	tree          engine.Tree
	rows, targets []int32
}

func newStepper(t *testing.T, c Config, dev engine.Device) *stepper {
	m := newModel(t, c, dev)
	params := m.Params()
	return &stepper{model: m, params: params, moments: adamw.NewState(params, m.Decays()), tape: engine.NewTape(dev)}
}

func (s *stepper) step(sequences [][]int32) {
	s.tape.Reset()
	s.tree.Reset()
	s.rows, s.targets = s.rows[:0], s.targets[:0]
	for i, path := range s.tree.Pack(sequences) {
		for p, row := range path[:len(path)-1] {
			s.rows, s.targets = append(s.rows, row), append(s.targets, sequences[i][p+1])
		}
	}
	for _, p := range s.params {
		p.ZeroGrad()
	}
	y := logprob.Forward(s.tape, s.model.Backbone.Hidden(s.tape, &s.tree), s.model.Head.Tensor, s.rows, s.targets)
	for r := range y.Rows {
		s.tape.Seed(y, r, -1/float64(y.Rows))
	}
	s.tape.Backward()
	norm := gradnorm.Norm(s.model.Device(), s.params)
	adamw.Step(s.model.Device(), s.params, s.moments, adamw.Options{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}, min(1, 1/norm))
}

// Steps allocate nothing in Go, start no goroutine and no thread, however many there are.
func TestStepsNeedNothingNew(t *testing.T) {
	for _, family := range families {
		s := newStepper(t, small(family), engine.CPU(2))
		sequences := onePrompt(2, 6, 5)
		for range 3 {
			s.step(sequences)
		}
		threads, goroutines := countThreads(t), runtime.NumGoroutine()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 1000 {
			s.step(sequences)
		}
		runtime.ReadMemStats(&after)
		// The runtime itself may allocate now and then, never once a step.
		if n := after.Mallocs - before.Mallocs; n > 20 {
			t.Errorf("%s: 1000 steps allocated %d times", family, n)
		}
		// The runtime may start a thread of its own while another is in C.
		if n := countThreads(t); n > threads+2 {
			t.Errorf("%s: %d threads became %d", family, threads, n)
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%s: %d goroutines became %d", family, goroutines, n)
		}
	}
}

func countThreads(t *testing.T) int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("no /proc/self/task to count threads in")
	}
	return len(tasks)
}

// Weights after a few steps have the same bits on 1, 2 and 3 threads, in both precisions.
func TestStepsOnAnyThreads(t *testing.T) {
	sequences := branches(4, 40)
	for _, precision := range []engine.Precision{engine.Float32, engine.BFloat16} {
		var want [][]float64
		for _, threads := range []int{1, 2, 3} {
			s := newStepper(t, small("qwen35"), engine.CPU(threads, engine.WithPrecision(precision)))
			for range 3 {
				s.step(sequences)
			}
			var got [][]float64
			for _, p := range s.params {
				got = append(got, elements(p.Tensor, nil))
			}
			if want == nil {
				want = got
			}
			if !slices.EqualFunc(got, want, slices.Equal[[]float64]) {
				t.Errorf("%s: other weights with %d threads than with one", precision, threads)
			}
		}
	}
}

// A sequence's hidden states have the same bits alone and among others.
func TestHiddenIsItsOwn(t *testing.T) {
	for _, family := range families {
		for _, precision := range []engine.Precision{engine.Float32, engine.BFloat16} {
			m := newModel(t, small(family), engine.CPU(2, engine.WithPrecision(precision)))
			hidden := func(sequences [][]int32) (all [][]float64) {
				tape := engine.NewTape(m.Device())
				var tree engine.Tree
				rows := forest(&tree, sequences)
				h := m.Backbone.Hidden(tape, &tree)
				for _, path := range rows {
					first := path[0] * int32(h.Stride)
					var own []float64
					for _, x := range h.F32[first : first+int32(len(path)*h.Stride)] {
						own = append(own, float64(x))
					}
					all = append(all, own)
				}
				return all
			}
			sequences := branches(5, 40)
			together := hidden(sequences)
			for i, s := range sequences {
				if alone := hidden([][]int32{s}); !slices.Equal(alone[0], together[i]) {
					t.Errorf("%s %s: sequence %d of %d tokens differs among others", family, precision, i, len(s))
				}
			}
		}
	}
}

// Gradients of samples that share their prompt are those of separate sequences, for the
// shapes of policy training and of preference tuples.
func TestSharingKeepsGradients(t *testing.T) {
	for _, c := range []struct{ samples, prompt, answer int }{{8, 1024, 64}, {12, 400, 24}} {
		m := newModel(t, wide(), engine.CPU(0))
		sequences := onePrompt(c.samples, c.prompt, c.answer)
		gradients := func(add func(*engine.Tree, [][]int32) [][]int32) (all [][]float64) {
			zeroGrads(m)
			tape := engine.NewTape(m.Device())
			var tree engine.Tree
			var rows, targets []int32
			for i, path := range add(&tree, sequences) {
				for p := c.prompt; p < len(path); p++ {
					rows, targets = append(rows, path[p-1]), append(targets, sequences[i][p])
				}
			}
			y := logprob.Forward(tape, m.Backbone.Hidden(tape, &tree), m.Head.Tensor, rows, targets)
			for r := range y.Rows {
				tape.Seed(y, r, -1/float64(y.Rows))
			}
			tape.Backward()
			for _, p := range m.Params() {
				all = append(all, elements(p.Grad, nil))
			}
			return all
		}
		want, got := gradients(forest), gradients((*engine.Tree).Pack)
		worst := 0.0
		for i, p := range m.Params() {
			e := relativeL2(got[i], want[i])
			if worst = max(worst, e); !(e <= 1e-5) {
				t.Errorf("%d samples of %d on %d: gradient of %s differs by %.2g", c.samples, c.answer, c.prompt, p.Name, e)
			}
		}
		t.Logf("%d samples of %d on %d: gradients differ by %.2g at most", c.samples, c.answer, c.prompt, worst)
	}
}

// A step's memory grows with the tokens of the tree, not with its samples.
func TestMemoryFollowsTheTree(t *testing.T) {
	for _, prompt := range []int{1024, 8192} {
		m := newModel(t, wide(), engine.CPU(0))
		bytes := func(samples int) (perRow float64) {
			tape := engine.NewTape(m.Device())
			var tree engine.Tree
			tree.Pack(onePrompt(samples, prompt, 8))
			h := m.Backbone.Hidden(tape, &tree)
			tape.Seed(h, 0, 1)
			tape.Backward()
			return float64(tape.Bytes()) / float64(tree.Rows())
		}
		if one, many := bytes(1), bytes(16); many > 1.1*one { // the arena takes memory in blocks
			t.Errorf("prompt of %d: %.0f bytes a token with 16 samples, %.0f with one", prompt, many, one)
		}
	}
}

// wide is a hybrid model with heads of the usual multiples of sixteen dimensions.
func wide() Config {
	c := small("qwen35").Text.(qwen35.Config)
	c.HiddenSize, c.IntermediateSize = 64, 96
	c.KeyDim, c.ValueDim = 32, 32
	c.InitRange = 0.1
	return Config{Text: c}
}

// onePrompt returns random samples of one prompt.
func onePrompt(samples, prompt, answer int) [][]int32 {
	r := engine.Random(6, "sequences", 0, 0)
	draw := func(n int) []int32 {
		s := make([]int32, n)
		for i := range s {
			s[i] = r.Int32N(40)
		}
		return s
	}
	first := draw(prompt)
	var sequences [][]int32
	for range samples {
		sequences = append(sequences, slices.Concat(first, draw(answer)))
	}
	return sequences
}
