package sft

import (
	"math"
	"slices"
	"testing"

	"caper/engine"
	"caper/model"
)

// The loss of a packed step is the mean of -log p over the tokens of queries and ends
// alone, computed for each sequence by itself. Tolerance: float32 sums.
func TestLossIsThatOfTheAnswers(t *testing.T) {
	r := opened(t, smallConfig(t))
	examples := r.take()
	prober, err := model.NewLogProber(r.run.Model, 1)
	if err != nil {
		t.Fatal(err)
	}
	sum, n := 0.0, 0
	for _, e := range examples {
		text := r.run.Model.Tokenizer.Decode(e.tokens[e.prompt:], false)
		if want := "SELECT"; text[:len(want)] != want || text[len(text)-len("<|im_end|>"):] != "<|im_end|>" {
			t.Fatalf("the answer is %q", text)
		}
		logProbs := prober.LogProbs([][]int32{e.tokens})[0]
		answer := logProbs[len(logProbs)-(len(e.tokens)-e.prompt):]
		for _, x := range answer {
			sum -= x
		}
		n += len(answer)
	}
	m, err := r.step(examples)
	if err != nil {
		t.Fatal(err)
	}
	if want := sum / float64(n); m.Predicted != n || math.Abs(*m.Loss-want) > 1e-5*want {
		t.Errorf("loss %v over %d tokens; alone %v over %d", *m.Loss, m.Predicted, want, n)
	}
	if m.Tokens >= m.Unpacked {
		t.Errorf("%d tokens, %d unpacked: nothing is shared", m.Tokens, m.Unpacked)
	}
}

// A packed step has the gradient of its sequences each in a tree of its own.
func TestPackedGradientIsThatOfSequences(t *testing.T) {
	r := opened(t, smallConfig(t))
	examples := slices.Clone(r.take())
	gradient := func(budget int) (all []float64, trees int) {
		r.run.ZeroGrad()
		r.results = r.results[:0]
		for r.lay(examples, budget); r.packer.Next(); trees++ {
			r.microBatch(examples, predictions(examples))
		}
		for _, p := range r.run.Params {
			for _, g := range p.Grad.F32 {
				all = append(all, float64(g))
			}
		}
		return all, trees
	}
	packed, trees := gradient(1 << 20)
	alone, many := gradient(1)
	if trees != 1 || many != len(examples) {
		t.Fatalf("%d and %d trees of %d examples", trees, many, len(examples))
	}
	largest, difference := 0.0, 0.0
	for i := range packed {
		largest, difference = max(largest, math.Abs(alone[i])), max(difference, math.Abs(packed[i]-alone[i]))
	}
	if largest == 0 || difference > 1e-5*largest {
		t.Errorf("gradients differ by %g, the largest is %g", difference, largest)
	}
}

// What is planned before the first step is what the tape holds after the last.
func TestPlannedMemoryIsWhatStepsReach(t *testing.T) {
	for _, mode := range []string{"none", "full"} {
		r := opened(t, smallConfig(t, "train.checkpointing="+mode, "train.micro_batch_tokens=150"))
		planned, err := r.run.Survey(t.Context(), r.walk, r.run.Tape.Checkpointing, 150)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.run.Loop(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got := r.run.Tape.Bytes(); got != planned.Bytes() || got == 0 {
			t.Errorf("%s: planned %d bytes, reached %d", mode, planned.Bytes(), got)
		}
	}
}

// A step whose loss is not finite changes no weight.
func TestNonFiniteStepIsSkipped(t *testing.T) {
	r := opened(t, smallConfig(t))
	r.run.Params[0].F32[0] = float32(math.NaN())
	before := bits(r.run.Params)
	m, err := r.step(r.take())
	if err != nil || !m.Skipped || m.Loss != nil || r.state.Skipped != 1 || !slices.Equal(before, bits(r.run.Params)) {
		t.Errorf("metrics %+v, error %v, state %+v", m, err, r.state)
	}
}

func bits(params []*engine.Param) (all []uint32) {
	for _, p := range params {
		for _, x := range p.F32 {
			all = append(all, math.Float32bits(x))
		}
	}
	return all
}
