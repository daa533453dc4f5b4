package policyloss

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
	"caper/model/safetensors"
)

// tokens lie on both sides of both clips, for advantages of both signs.
var tokens = []Token{
	{Old: -1, Reference: -1.2, Advantage: 1, Weight: 0.25},
	{Old: -3, Reference: -0.5, Advantage: 1.5, Weight: 0.25},
	{Old: 2, Reference: -1, Advantage: 0.75, Weight: 0.125},
	{Old: -3, Reference: 0.5, Advantage: -1, Weight: 0.5},
	{Old: 3, Reference: 0, Advantage: -2, Weight: 0.5},
	{Old: 0, Reference: -2, Advantage: 0, Weight: 0.5},
	{Old: 0, Reference: -2, Advantage: 1, Weight: 0},
	{Old: -0.5, Reference: -1, Advantage: -0.5, Weight: 1},
}

var options = []Options{{Low: 0.2, High: 0.28}, {Low: 0.2, High: 0.2, KL: 0.01}, {Low: 0.3, High: 0.4, DualClip: 3, KL: 0.5}}

func operator(tokens []Token, o Options) optest.Case {
	return optest.Case{
		Name:   fmt.Sprintf("%d tokens, %+v", len(tokens), o),
		Inputs: []optest.Input{{Name: "logprobs", Rows: len(tokens), Cols: 1, Deviation: 1, Mean: -1, Float32: true}},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], tokens, o))
		},
		Tolerance: 4e-7, // float64 arithmetic on rounded log-probs
		BF16:      4e-6, // float32 arithmetic
	}
}

func Test(t *testing.T) {
	for _, o := range options {
		optest.Run(t, operator(tokens, o))
	}
}

// evaluate returns the loss of log-probs and its slopes, in float64.
func evaluate(logProbs []float64, tokens []Token, o Options) (loss float64, slopes []float64) {
	tape := engine.NewTape(engine.Reference())
	x := tape.New(len(logProbs), 1)
	for i, v := range logProbs {
		x.Set(i, 0, v)
	}
	l := Forward(tape, x, tokens, o)
	tape.Seed(l, 0, 1)
	tape.Backward()
	for i := range logProbs {
		slopes = append(slopes, tape.Gradient(x).At(i, 0))
	}
	return l.At(0, 0), slopes
}

func TestKnownValues(t *testing.T) {
	o := Options{Low: 0.2, High: 0.28, DualClip: 3}
	at := func(ratio, advantage float64) Token {
		return Token{Old: float32(-math.Log(ratio)), Advantage: float32(advantage), Weight: 1}
	}
	for _, c := range []struct{ ratio, advantage, loss, slope float64 }{
		{1, 2, -2, -2},
		{1.25, 2, -2.5, -2.5}, // within the higher bound
		{2, 2, -2.56, 0},      // cut off at 1.28
		{0.5, 2, -1, -1},      // a good token that became rarer is never cut off
		{0.5, -2, 1.6, 0},     // a bad one is, at 0.8
		{2, -2, 4, 4},
		{4, -2, 6, 0}, // three advantages at most
		{1e12, 2, -2.56, 0},
		{1e12, 0, 0, 0},
	} {
		loss, slopes := evaluate([]float64{0}, []Token{at(c.ratio, c.advantage)}, o)
		if math.Abs(loss-c.loss) > 1e-6 || math.Abs(slopes[0]-c.slope) > 1e-6 {
			t.Errorf("ratio %g, advantage %g: loss %g, slope %g; want %g, %g", c.ratio, c.advantage, loss, slopes[0], c.loss, c.slope)
		}
		if clipped := o.Clipped(at(c.ratio, c.advantage), 0); clipped != (c.slope == 0 && c.advantage != 0) {
			t.Errorf("ratio %g, advantage %g: clipped %v", c.ratio, c.advantage, clipped)
		}
	}
	if loss, slopes := evaluate([]float64{math.NaN()}, []Token{{Advantage: 1}}, o); loss != 0 || slopes[0] != 0 {
		t.Errorf("a token of weight 0: loss %g, slope %g", loss, slopes[0])
	}
}

// PyTorch's losses and gradients of four samples, three normalisations, with and without
// k3.
func TestGolden(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "data", "golden", "grpo", "golden.safetensors")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no reference data: %v", err)
	}
	file, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	read := func(name string) []float64 {
		tensor, err := file.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, tensor.Len())
		if err := tensor.Float64s(values); err != nil {
			t.Fatal(err)
		}
		return values
	}
	const samples, longest = 4, 32
	var logProbs []float64
	var all []Token
	var lengths []int
	for i := range samples {
		old, reference, advantages := read(fmt.Sprint("old.", i)), read(fmt.Sprint("ref.", i)), read(fmt.Sprint("adv.", i))
		for k, x := range read(fmt.Sprint("new.", i)) {
			all = append(all, Token{Old: float32(old[k]), Reference: float32(reference[k]), Advantage: float32(advantages[k])})
			logProbs = append(logProbs, x)
		}
		lengths = append(lengths, len(old))
	}
	for name, n := range map[string]Normalisation{"sample_mean": PerSample, "token_mean": PerToken, "constant": Constant} {
		weights, err := n.Weights(lengths, longest)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for i, length := range lengths {
			for range length {
				all[at].Weight = weights[i]
				at++
			}
		}
		for kind, beta := range map[string]float64{"kl": 0.01, "nokl": 0} {
			loss, slopes := evaluate(logProbs, all, Options{Low: 0.2, High: 0.28, KL: beta})
			if want := read("loss." + name + "." + kind)[0]; math.Abs(loss-want) > 1e-6 {
				t.Errorf("%s, %s: loss %.9f, want %.9f", name, kind, loss, want)
			}
			at = 0
			for i := range samples {
				for k, want := range read(fmt.Sprintf("grad.%s.%s.%d", name, kind, i)) {
					if math.Abs(slopes[at]-want) > 1e-6 {
						t.Errorf("%s, %s: slope of token %d of sample %d is %.9f, want %.9f", name, kind, k, i, slopes[at], want)
					}
					at++
				}
			}
		}
	}
}
