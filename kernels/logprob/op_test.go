package logprob

import (
	"fmt"
	"math"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

// operator asks for pairs at rows that repeat and leave gaps.
func operator(rows, width, words, pairs int) optest.Case {
	at, targets := make([]int32, pairs), make([]int32, pairs)
	for n := range pairs {
		at[n] = int32(n * 7 / 3 % rows)
		targets[n] = int32((n*n + words - 1) % words)
	}
	return optest.Case{
		Name: fmt.Sprintf("%d rows of %d, %d words, %d pairs", rows, width, words, pairs),
		Inputs: []optest.Input{
			{Name: "hidden", Rows: rows, Cols: width},
			{Name: "head", Rows: words, Cols: width, Deviation: 0.5, Weight: true},
		},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], in[1], at, targets))
		},
		// Dot products of width terms before an exponential, and sums over the words.
		Tolerance: 3e-6,
		// Logits are exact products of bf16; their gradients are rounded to it (2^-8) before
		// they are summed, and the rows' gradients after.
		BF16: 1e-2,
	}
}

func Test(t *testing.T) {
	optest.Run(t, operator(1, 3, 2, 1))
	optest.Run(t, operator(5, 20, 37, 9))
	optest.Run(t, operator(30, 8, 2050, 40))   // two chunks of words
	optest.Run(t, operator(100, 17, 13, 1100)) // two blocks of pairs
}

// What does not fit is formed again, and holds up as well.
func TestLogitsNotKept(t *testing.T) {
	defer func(n int) { mostKept = n }(mostKept)
	mostKept = 0
	optest.Run(t, operator(5, 20, 37, 9))
	optest.Run(t, operator(30, 8, 2050, 40))
	optest.Run(t, operator(100, 17, 13, 1100))
}

// On a GPU, several blocks and chunks.
func TestBlocksOnCUDA(t *testing.T) {
	defer func(kept, pairs, words int) { mostKept, gpuPairs, gpuWords = kept, pairs, words }(mostKept, gpuPairs, gpuWords)
	mostKept, gpuPairs, gpuWords = 0, 16, 24
	optest.Run(t, operator(30, 40, 130, 50))
	mostKept = 1 << 24
	optest.Run(t, operator(30, 40, 130, 50))
}

// Logits far from zero must neither overflow nor vanish.
func TestLargeLogits(t *testing.T) {
	tape := engine.NewTape(engine.CPU(1))
	hidden, head := tape.New(1, 1), tape.New(3, 1)
	hidden.Set(0, 0, 1000)
	for j, x := range []float64{1, -1, 0.999} {
		head.Set(j, 0, x)
	}
	y := Forward(tape, hidden, head, []int32{0, 0}, []int32{0, 1})
	want := -math.Log1p(math.Exp(-1))
	// float32 holds 999 to 6e-5.
	if got := y.At(0, 0); math.Abs(got-want) > 1e-4 {
		t.Errorf("log-probability %g, want %g", got, want)
	}
	if got := y.At(1, 0); math.Abs(got-(want-2000)) > 1e-3 {
		t.Errorf("log-probability %g, want %g", got, want-2000)
	}
}

// A pair that nobody asks a gradient of has none, whatever its row holds.
func TestUnusedPair(t *testing.T) {
	for _, dev := range []engine.Device{engine.Reference(), engine.CPU(1)} {
		tape := engine.NewTape(dev)
		hidden, head := tape.Zeros(2, 4), engine.NewParam(dev, "head", 5, 4)
		hidden.Set(1, 0, math.NaN())
		y := Forward(tape, hidden, head.Tensor, []int32{0, 1}, []int32{2, 2})
		tape.Seed(y, 0, 1)
		tape.Backward()
		for j := range head.Rows {
			if g := head.Grad.At(j, 0); g != 0 {
				t.Errorf("%s: gradient %g of the head", dev.Name(), g)
			}
		}
	}
}

func TestNoPairs(t *testing.T) {
	tape := engine.NewTape(engine.CPU(1))
	y := Forward(tape, tape.Zeros(2, 4), tape.Zeros(5, 4), nil, nil)
	tape.AddTo(y)
	tape.Backward()
	if y.Rows != 0 {
		t.Errorf("%d results of no pairs", y.Rows)
	}
}
