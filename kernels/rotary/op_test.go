package rotary

import (
	"fmt"
	"math"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

func positions(rows int) []int32 {
	positions := make([]int32, rows)
	for i := range positions {
		positions[i] = int32(i * i % 301)
	}
	return positions
}

func operator(rows int, o Options) optest.Case {
	positions := positions(rows)
	return optest.Case{
		Name: fmt.Sprintf("%d rows, %d heads of %d, rotary %d", rows, o.Heads, o.Dim, o.RotaryDims),
		Inputs: []optest.Input{
			{Name: "x", Rows: rows, Cols: (o.Heads-1)*o.HeadStride + max(o.Dim, o.HeadStride), Deviation: 2},
			// Sums over rows and heads: rounding grows with the root of their number.
			{Name: "w", Rows: 1, Cols: o.Dim, Mean: 0.5, Deviation: 0.2, Tolerance: 2e-6, Weight: true, BF16: 2e-5},
		},
		Forward: func(t *engine.Tape, in, out []*engine.Tensor) []*engine.Tensor {
			return append(out, Forward(t, in[0], in[1], positions, o))
		},
		// A sum of Dim squares in sixteen lanes, and eight roundings of 6e-8, those
		// of cosine and sine among them.
		Tolerance: 8e-7,
		BF16:      4e-3, // one rounding to 8 bits
	}
}

func Test(t *testing.T) {
	for _, c := range []struct {
		rows int
		o    Options
	}{
		{1, Options{Heads: 1, Dim: 4, HeadStride: 4, RotaryDims: 4, Theta: 1e4, Eps: 1e-6}},
		{5, Options{Heads: 3, Dim: 15, HeadStride: 15, RotaryDims: 6, Theta: 1e7, Eps: 1e-6, OffsetGain: true}},
		{33, Options{Heads: 2, Dim: 32, HeadStride: 64, RotaryDims: 8, Theta: 1e7, Eps: 1e-6, OffsetGain: true}},
		{40, Options{Heads: 2, Dim: 64, HeadStride: 128, RotaryDims: 64, Theta: 1e6, Eps: 1e-6}},
		{70, Options{Heads: 2, Dim: 24, HeadStride: 24, RotaryDims: 0, Theta: 1e6, Eps: 1e-6}},
	} {
		optest.Run(t, operator(c.rows, c.o))
	}
}

// What rotary embeddings are for: the product of a query and a key depends on the
// distance of their positions alone. Far positions too, where float32 angles fail.
func TestProductDependsOnDistance(t *testing.T) {
	o := Options{Heads: 1, Dim: 32, HeadStride: 32, RotaryDims: 16, Theta: 1e7, Eps: 1e-6}
	product := func(query, key int32) float64 {
		tape := engine.NewTape(engine.CPU(1))
		x, w := tape.New(2, o.Dim), tape.New(1, o.Dim)
		for c := range o.Dim {
			x.Set(0, c, math.Sin(float64(c+1)))
			x.Set(1, c, math.Cos(float64(3*c)))
			w.Set(0, c, 1)
		}
		y := Forward(tape, x, w, []int32{query, key}, o)
		var sum float64
		for c := range o.Dim {
			sum += y.At(0, c) * y.At(1, c)
		}
		return sum
	}
	for _, distance := range []int32{0, 1, 7, 100} {
		want := product(distance, 0)
		for _, at := range []int32{1, 64, 5000, 100000} {
			// 32 products of size 1 with roundings of 6e-8.
			if got := product(at+distance, at); math.Abs(got-want) > 5e-6 {
				t.Errorf("distance %d: product %g at position %d, %g at 0", distance, got, at, want)
			}
		}
	}
}

// A row's result does not depend on the positions of others, nor on how far the
// table reaches.
func TestRowAlone(t *testing.T) {
	o := Options{Heads: 2, Dim: 20, HeadStride: 20, RotaryDims: 12, Theta: 1e5, Eps: 1e-6}
	tape := engine.NewTape(engine.CPU(1))
	w, x := tape.Zeros(1, o.Dim), tape.New(3, 40)
	for i := range x.F32 {
		x.F32[i] = float32(i%7) - 3
	}
	for i := range w.F32 {
		w.F32[i] = float32(i)
	}
	alone := tape.New(1, 40)
	copy(alone.F32, x.F32[40:80])
	want := Forward(tape, alone, w, []int32{9}, o)
	got := Forward(tape, x, w, []int32{2000, 9, 31}, o)
	for c := range got.Cols {
		if got.At(1, c) != want.At(0, c) {
			t.Fatalf("column %d is %g among others, %g alone", c, got.At(1, c), want.At(0, c))
		}
	}
}
