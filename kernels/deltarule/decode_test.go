package deltarule

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"caper/engine"
	"caper/kernels/optest"
)

// decoding is a prompt with samples, as a tree, and the inputs of each of its rows.
type decoding struct {
	o      Options
	tree   engine.Tree
	inputs []*engine.Tensor // q, k, v, g, beta
}

func drawDecoding(t *rapid.T) *decoding {
	key := rapid.IntRange(1, 3).Draw(t, "key heads")
	d := &decoding{o: Options{
		KeyHeads: key, ValueHeads: key * rapid.IntRange(1, 3).Draw(t, "value heads of a key head"),
		KeyDim:   rapid.SampledFrom([]int{1, 16, 20}).Draw(t, "key dim"),
		ValueDim: rapid.SampledFrom([]int{1, 16, 70}).Draw(t, "value dim"),
	}}
	d.tree.AddSegment(-1, make([]int32, rapid.SampledFrom([]int{1, 5, 63, 64, 65, 130}).Draw(t, "prompt")))
	for range rapid.IntRange(1, 4).Draw(t, "samples") {
		d.tree.AddSegment(0, make([]int32, rapid.SampledFrom([]int{1, 2, 7, 64, 65, 140}).Draw(t, "sample")))
	}
	decay := rapid.SampledFrom([]func(float64) float64{weak, mixed, strong, abrupt}).Draw(t, "decay")
	c := build(d.o, decay)(&d.tree)
	for _, in := range c.Inputs {
		d.inputs = append(d.inputs, tensor(in))
	}
	return d
}

// tensor is an input's elements in float64.
func tensor(in optest.Input) *engine.Tensor {
	x := engine.NewFrozen(engine.Reference(), in.Name, in.Rows, in.Cols).Tensor
	r := engine.Random(1, in.Name, uint64(in.Rows), 0)
	for i := range x.F64 {
		x.F64[i] = float64(float32(r.NormFloat64()))
		if in.Values != nil {
			x.F64[i] = in.Values[i]
		}
	}
	return x
}

// run decodes the prompt in pieces of piece(left) whole chunks, then the samples row
// by row, all together or one after the other, and returns the rows' results.
func (d *decoding) run(dev engine.Device, piece func(left int) int, together bool) [][]float64 {
	tape := engine.NewTape(dev)
	tape.Inference, tape.Poison = true, true
	samples := len(d.tree.Start) - 1
	c := NewCache(dev, 1+samples, samples, d.o)
	out := make([][]float64, d.tree.Rows())
	var s Steps
	var rows []int32
	flush := func() {
		var in []*engine.Tensor
		for n, x := range d.inputs {
			y := tape.New(len(rows), x.Cols)
			if n > 2 { // g and beta
				y = tape.NewFloat32(len(rows), x.Cols)
			}
			for i, r := range rows {
				for j := range x.Cols {
					y.Set(i, j, x.At(int(r), j))
				}
			}
			in = append(in, y)
		}
		y := Decode(tape, in[0], in[1], in[2], in[3], in[4], c, &s)
		for i, r := range rows {
			for j := range y.Cols {
				out[r] = append(out[r], y.At(i, j))
			}
		}
		s.Reset()
		rows = rows[:0]
		tape.Reset()
	}
	for at, from := 0, int32(-1); at < int(d.tree.Len[0]); from = 0 {
		left := int(d.tree.Len[0]) - at
		n := min(left, ChunkLen*piece((left+ChunkLen-1)/ChunkLen))
		s.Add(n, from, 0)
		for i := range n {
			rows = append(rows, int32(at+i))
		}
		at += n
		flush()
	}
	step := func(i, sample int) bool {
		seg := sample + 1
		if i >= int(d.tree.Len[seg]) {
			return false
		}
		from := int32(seg)
		if i < ChunkLen {
			from = 0 // the prompt's
		}
		s.AddOpen(from, int32(seg), int32(sample), int32(i%ChunkLen))
		rows = append(rows, d.tree.Start[seg]+int32(i))
		return true
	}
	for sample := range samples {
		if together {
			break
		}
		for i := 0; step(i, sample); i++ {
			flush()
		}
	}
	for i := 0; together; i++ {
		for sample := range samples {
			step(i, sample)
		}
		if len(rows) == 0 {
			break
		}
		flush()
	}
	return out
}

// Decoding gives what the recurrence gives on the tree: the specification to float64,
// the C code to float32; and the C code gives the same bits for any pieces of the
// prompt, samples alone or together, and any number of threads.
func TestDecode(t *testing.T) {
	reference, one, three := engine.Reference(), engine.CPU(1), engine.CPU(3)
	rapid.Check(t, func(t *rapid.T) {
		d := drawDecoding(t)
		in := d.inputs
		want := Forward(engine.NewTape(reference), in[0], in[1], in[2], in[3], in[4], &d.tree, d.o)
		scale := 0.0
		for _, x := range want.F64 {
			scale = max(scale, math.Abs(x))
		}
		near := func(what string, got [][]float64, tolerance float64) {
			for i, row := range got {
				for j, x := range row {
					if w := want.At(i, j); !(math.Abs(x-w) <= tolerance*scale) {
						t.Fatalf("%s: row %d, column %d: %g, want %g", what, i, j, x, w)
					}
				}
			}
		}
		piece := func(left int) int { return rapid.IntRange(1, left).Draw(t, "piece") }
		near("specification", d.run(reference, piece, true), 1e-12)
		got := d.run(one, piece, true)
		near("C", got, 1e-5) // as in Test
		for i, row := range d.run(three, func(left int) int { return left }, false) {
			for j, x := range row {
				if x != got[i][j] {
					t.Fatalf("row %d, column %d: %g, otherwise %g", i, j, x, got[i][j])
				}
			}
		}
	})
}

// On a GPU, too, within what rounding to bf16 costs, and with the same bits in any pieces.
func TestDecodeOnCUDA(t *testing.T) {
	gpu := optest.CUDA(t)
	d := &decoding{o: Options{KeyHeads: 1, ValueHeads: 2, KeyDim: 20, ValueDim: 16}}
	d.tree.AddSegment(-1, make([]int32, 130))
	for _, n := range []int{1, 66} {
		d.tree.AddSegment(0, make([]int32, n))
	}
	for i, in := range build(d.o, mixed)(&d.tree).Inputs {
		x := tensor(in)
		for e := range x.F64 {
			if i < 3 {
				x.F64[e] = optest.RoundBF16(x.F64[e])
			}
		}
		d.inputs = append(d.inputs, x)
	}
	in := d.inputs
	want := Forward(engine.NewTape(engine.Reference()), in[0], in[1], in[2], in[3], in[4], &d.tree, d.o)
	size := 0.0
	for _, x := range want.F64 {
		size += x * x / float64(len(want.F64))
	}
	whole := d.run(gpu, func(left int) int { return left }, true)
	pieces := d.run(gpu, func(int) int { return 1 }, false)
	for i, row := range whole {
		for j, x := range row {
			if w := want.At(i, j); !(math.Abs(x-w) <= readingTolerance*(math.Abs(w)+math.Sqrt(size))) {
				t.Fatalf("row %d, column %d: %g, want %g", i, j, x, w)
			}
			if x != pieces[i][j] {
				t.Fatalf("row %d, column %d: %g, in pieces %g", i, j, x, pieces[i][j])
			}
		}
	}
	if err := engine.Wait(gpu); err != nil {
		t.Error(err)
	}
}

func BenchmarkDecode(b *testing.B) {
	const samples = 32
	o := Options{KeyHeads: 4, ValueHeads: 8, KeyDim: 64, ValueDim: 64}
	for _, own := range []bool{false, true} {
		b.Run(map[bool]string{false: "shared state", true: "own states"}[own], func(b *testing.B) {
			dev := engine.CPU(2)
			c := NewCache(dev, 1+samples, samples, o)
			tape := engine.NewTape(dev)
			tape.Inference = true
			x := func(cols int) *engine.Tensor { return engine.NewFrozen(dev, "x", samples, cols).Tensor }
			q, k, v, g, beta := x(256), x(256), x(512), x(8), x(8)
			var s Steps
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				tape.Reset()
				s.Reset()
				for n := range int32(samples) {
					from := int32(samples)
					if own {
						from = n
					}
					s.AddOpen(from, n, n, int32(i%ChunkLen))
				}
				Decode(tape, q, k, v, g, beta, c, &s)
			}
		})
	}
}
