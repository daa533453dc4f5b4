package marginloss

import (
	"fmt"
	"math"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

var pairs = []Pair{
	{Chosen: 0, Rejected: 1, Margin: 0.5, Weight: 0.5},
	{Chosen: 2, Rejected: 3, Margin: 1, Weight: 1},
	{Chosen: 4, Rejected: 1, Margin: 0.25, Weight: 0.125}, // shares a row
	{Chosen: 5, Rejected: 6, Margin: 0.1, Weight: 0},
}

func operator(pairs []Pair, rows int, o Options) optest.Case {
	return optest.Case{
		Name:   fmt.Sprintf("%d pairs, %+v", len(pairs), o),
		Inputs: []optest.Input{{Name: "scores", Rows: rows, Cols: 1, Deviation: 2, Float32: true}},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], pairs, o))
		},
		Tolerance: 2e-7, // float64 arithmetic, rounded once
		BF16:      2e-6, // float32 arithmetic
	}
}

func Test(t *testing.T) {
	for _, o := range []Options{{Center: 0.01}, {Offset: 1}, {Offset: 0.7, Center: 0.3}, {Center: 0.1, WeightSum: 7, PairCount: 9}} {
		optest.Run(t, operator(pairs, 7, o))
	}
}

// loss computes the loss of two scores and its gradients on dev.
func loss(p Pair, o Options, chosen, rejected float64) (value, dChosen, dRejected float64) {
	tape := engine.NewTape(engine.Reference())
	s := tape.New(2, 1)
	s.Set(0, 0, chosen)
	s.Set(1, 0, rejected)
	p.Chosen, p.Rejected = 0, 1
	l := Forward(tape, s, []Pair{p}, o)
	tape.Seed(l, 0, 1)
	tape.Backward()
	g := tape.Gradient(s)
	return l.At(0, 0), g.At(0, 0), g.At(1, 0)
}

func TestKnownValues(t *testing.T) {
	if l, dc, dr := loss(Pair{Weight: 3}, Options{}, 1, 1); math.Abs(l-math.Ln2) > 1e-15 || dc != -0.5 || dr != 0.5 {
		t.Errorf("equal scores: loss %g, gradient %g, %g; want ln 2, -1/2, 1/2", l, dc, dr)
	}
	// The offset moves the loss by the margin.
	a, _, _ := loss(Pair{Weight: 1, Margin: 0.5}, Options{Offset: 2}, 3, 1)
	b, _, _ := loss(Pair{Weight: 1}, Options{}, 2, 1)
	if a != b {
		t.Errorf("offset 2 and margin 0.5: %g, want the loss of scores one closer, %g", a, b)
	}
}

func TestExtremeScores(t *testing.T) {
	if l, dc, dr := loss(Pair{Weight: 1}, Options{}, -1000, 1000); l != 2000 || dc != -1 || dr != 1 {
		t.Errorf("far the wrong way: loss %g, gradient %g, %g; want 2000, -1, 1", l, dc, dr)
	}
	if l, dc, dr := loss(Pair{Weight: 1}, Options{}, 1000, -1000); l != 0 || dc != 0 || dr != 0 {
		t.Errorf("far the right way: loss %g, gradient %g, %g; want 0", l, dc, dr)
	}
}

// A pair without weight is left out, not multiplied by zero.
func TestPairWithoutWeight(t *testing.T) {
	if l, dc, dr := loss(Pair{}, Options{}, math.NaN(), math.Inf(1)); l != 0 || dc != 0 || dr != 0 {
		t.Errorf("loss %g, gradient %g, %g of a pair without weight; want 0", l, dc, dr)
	}
}
