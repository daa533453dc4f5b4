package attention

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"caper/engine"
	"caper/kernels/optest"
)

// decoding is a set of sequences that share beginnings, and the layout that Decode and
// Forward are run with.
type decoding struct {
	o          Options
	gated      bool
	tree       engine.Tree
	rows       [][]int32 // of each sequence: its rows in tree
	q, k, v, z *engine.Tensor
}

// drawDecoding draws prompts with samples: sequences that share a prompt share all
// of its blocks but the last, partial one, which each copies.
func drawDecoding(t *rapid.T, dev engine.Device) *decoding {
	d := &decoding{gated: rapid.Bool().Draw(t, "gated")}
	group := rapid.SampledFrom([]int{1, 2, 3, 6}).Draw(t, "group")
	dim := rapid.SampledFrom([]int{2, 16, 32, 70}).Draw(t, "dim")
	kv := rapid.IntRange(1, 2).Draw(t, "kv")
	d.o = Options{Heads: kv * group, KVHeads: kv, Dim: dim, GateStride: 2 * dim, GateOffset: dim}
	for range rapid.IntRange(1, 3).Draw(t, "prompts") {
		prompt := rapid.SampledFrom([]int{1, 5, 63, 64, 65, 130}).Draw(t, "prompt")
		p := d.tree.AddSegment(-1, make([]int32, prompt))
		for range rapid.IntRange(1, 4).Draw(t, "samples") {
			n := rapid.SampledFrom([]int{1, 2, 7, 64, 90}).Draw(t, "sample")
			s := d.tree.AddSegment(p, make([]int32, n))
			d.rows = append(d.rows, d.tree.Path(nil, d.tree.Start[s]+int32(n-1)))
		}
	}
	d.fill(dev, rapid.Uint64().Draw(t, "seed"))
	return d
}

// fill draws what the tree's rows hold, in numbers that bf16 has, so that it is the same on all devices.
func (d *decoding) fill(dev engine.Device, seed uint64) {
	dim, kv := d.o.Dim, d.o.KVHeads
	r := engine.Random(seed, "decode", 0, 0)
	fill := func(cols int) *engine.Tensor {
		x := engine.NewFrozen(dev, "x", d.tree.Rows(), cols).Tensor
		for i := range x.Rows {
			for j := range x.Cols {
				x.Set(i, j, optest.RoundBF16(r.NormFloat64()))
			}
		}
		return x
	}
	d.q, d.k, d.v, d.z = fill(d.o.Heads*dim), fill(kv*dim), fill(kv*dim), fill(d.o.Heads*2*dim)
	if !d.gated {
		d.z = nil
	}
}

// sequence is one under way: the first done of its rows are in the cache, of which
// another one computes the first shared.
type sequence struct {
	rows         []int32
	table        []int32
	shared, done int
}

// run decodes all sequences on dev and returns the output of each row of the tree.
// cut says how many of a sequence's rows come next, at most the given number.
func (d *decoding) run(dev engine.Device, cut func(most int) int) [][]float64 {
	tape := engine.NewTape(dev)
	tape.Inference, tape.Poison = true, true
	var all []*sequence
	blocks := 0
	for i, rows := range d.rows {
		s := &sequence{rows: rows}
		prompt := int(d.tree.Len[0])
		if p := d.tree.Parent[d.tree.Segment[rows[len(rows)-1]]]; p >= 0 {
			prompt = int(d.tree.Len[p])
		}
		for b := range (len(rows) + BlockLen - 1) / BlockLen {
			// Earlier sequences of the same prompt have run before: share.
			if i > 0 && d.rows[i-1][0] == rows[0] && (b+1)*BlockLen <= prompt {
				s.table = append(s.table, all[i-1].table[b])
				s.shared = (b + 1) * BlockLen
			} else {
				s.table = append(s.table, int32(blocks))
				blocks++
			}
		}
		s.done = s.shared
		all = append(all, s)
	}
	c := NewCache(dev, blocks, d.o)
	out := make([][]float64, d.tree.Rows())
	var p Places
	// The first sequence of each prompt runs ahead, until the others have what they
	// share with it; then all go on, some rows each at a time.
	for left := true; left; {
		left = false
		tape.Reset()
		p.Reset()
		var rows []int32
		ready := map[int32]int{}
		for _, s := range all {
			if most, ok := ready[s.rows[0]]; ok && most < s.shared {
				left = true
				continue
			}
			if n := len(s.rows) - s.done; n > 0 {
				n = cut(n)
				p.Add(s.table, s.done, n)
				rows = append(rows, s.rows[s.done:s.done+n]...)
				s.done += n
				left = true
			}
			if _, ok := ready[s.rows[0]]; !ok {
				ready[s.rows[0]] = s.done
			}
		}
		if len(rows) == 0 {
			break
		}
		pick := func(x *engine.Tensor) *engine.Tensor {
			if x == nil {
				return nil
			}
			y := tape.New(len(rows), x.Cols)
			for i, r := range rows {
				for j := range x.Cols {
					y.Set(i, j, x.At(int(r), j))
				}
			}
			return y
		}
		y := Decode(tape, pick(d.q), pick(d.k), pick(d.v), pick(d.z), c, &p)
		for i, r := range rows {
			out[r] = out[r][:0]
			for j := range y.Cols {
				out[r] = append(out[r], y.At(i, j))
			}
		}
	}
	return out
}

// Decoding in any cuts gives what Forward gives on the whole tree: the specification
// to float64, the C code to float32; and the C code gives the same bits however the
// rows are cut, and with any number of threads.
func TestDecode(t *testing.T) {
	reference, one, three := engine.Reference(), engine.CPU(1), engine.CPU(3)
	rapid.Check(t, func(t *rapid.T) {
		d := drawDecoding(t, reference)
		tape := engine.NewTape(reference)
		want := Forward(tape, d.q, d.k, d.v, d.z, &d.tree, d.o)
		cut := func(most int) int { return rapid.IntRange(1, most).Draw(t, "cut") }
		near := func(what string, got [][]float64, tolerance float64) {
			for i, row := range got {
				for j, x := range row {
					if w := want.At(i, j); !(math.Abs(x-w) <= tolerance) {
						t.Fatalf("%s: row %d, column %d: %g, want %g", what, i, j, x, w)
					}
				}
			}
		}
		near("specification", d.run(reference, cut), 1e-12)
		got := d.run(one, cut)
		// Averages of numbers of size 1: a few roundings of 6e-8.
		near("C", got, 5e-6)
		for what, again := range map[string][][]float64{
			"one row at a time": d.run(three, func(int) int { return 1 }),
			"all at once":       d.run(three, func(most int) int { return most }),
		} {
			for i, row := range again {
				for j, x := range row {
					if x != got[i][j] {
						t.Fatalf("%s: row %d, column %d: %g, otherwise %g", what, i, j, x, got[i][j])
					}
				}
			}
		}
	})
}

// On a GPU the same holds, in bf16.
func TestDecodeOnCards(t *testing.T) {
	dev, reference := optest.CUDA(t), engine.Reference()
	d := &decoding{gated: true, o: Options{Heads: 4, KVHeads: 2, Dim: 16, GateStride: 32, GateOffset: 16}}
	for _, prompt := range []struct{ length, samples int }{{130, 3}, {5, 1}} {
		p := d.tree.AddSegment(-1, make([]int32, prompt.length))
		for n := range prompt.samples {
			s := d.tree.AddSegment(p, make([]int32, 1+60*n))
			d.rows = append(d.rows, d.tree.Path(nil, d.tree.Start[s]+int32(60*n)))
		}
	}
	d.fill(reference, 1)
	tape := engine.NewTape(reference)
	want := Forward(tape, d.q, d.k, d.v, d.z, &d.tree, d.o)
	all := d.run(dev, func(most int) int { return most })
	some := d.run(dev, func(most int) int { return min(most, 50) })
	for i := range all {
		for j, x := range all[i] {
			if w := want.At(i, j); !(math.Abs(x-w) <= 0.02) { // weights near 1, off by 2^-9 of values of size 3
				t.Fatalf("row %d, column %d: %g, want %g", i, j, x, w)
			}
			if x != some[i][j] {
				t.Fatalf("row %d, column %d: %g, cut otherwise %g", i, j, x, some[i][j])
			}
		}
	}
	if err := engine.Wait(dev); err != nil {
		t.Error(err)
	}
}

// A sequence goes on in a copy of its last block as it does in the block.
func TestCopyBlock(t *testing.T) {
	for _, dev := range []engine.Device{engine.Reference(), engine.CPU(1), optest.CUDA(t)} {
		o := Options{Heads: 2, KVHeads: 2, Dim: 8}
		c := NewCache(dev, 2, o)
		tape := engine.NewTape(dev)
		tape.Inference = true
		decode := func(table []int32, first, n int) *engine.Tensor {
			var p Places
			p.Add(table, first, n)
			x := tape.New(n, 16)
			for i := range n {
				for j := range 16 {
					x.Set(i, j, math.Sin(float64(first+i+j)))
				}
			}
			return Decode(tape, x, x, x, nil, c, &p)
		}
		decode([]int32{0}, 0, 10)
		c.CopyBlock(1, 0, 10)
		got, want := decode([]int32{1}, 10, 1), decode([]int32{0}, 10, 1)
		for j := range 16 {
			if g, w := got.At(0, j), want.At(0, j); g != w || w == 0 {
				t.Errorf("%s: column %d is %g after the copy, %g without", dev.Name(), j, g, w)
			}
		}
	}
}

// A warm step allocates nothing.
func TestDecodeAllocations(t *testing.T) {
	dev := engine.CPU(2)
	o := Options{Heads: 4, KVHeads: 2, Dim: 32}
	c := NewCache(dev, 8, o)
	tape := engine.NewTape(dev)
	tape.Inference = true
	var p Places
	table := []int32{3, 1}
	step := func() {
		tape.Reset()
		p.Reset()
		p.Add(table, 60, 8)
		Decode(tape, tape.Zeros(8, 128), tape.Zeros(8, 64), tape.Zeros(8, 64), nil, c, &p)
	}
	step()
	if n := testing.AllocsPerRun(10, step); n > 0 {
		t.Errorf("a step allocates %g times", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	const samples, prompt, dim = 32, 1024, 64
	o := Options{Heads: 8, KVHeads: 2, Dim: dim}
	for _, shared := range []bool{true, false} {
		name := map[bool]string{true: "one prompt", false: "own prompts"}[shared]
		b.Run(name, func(b *testing.B) {
			dev := engine.CPU(2)
			blocks := prompt/BlockLen + samples
			if !shared {
				blocks = samples * (prompt/BlockLen + 1)
			}
			c := NewCache(dev, blocks, o)
			tape := engine.NewTape(dev)
			tape.Inference = true
			var p Places
			for s := range samples {
				var table []int32
				for i := range prompt / BlockLen {
					if !shared {
						i += s * (prompt/BlockLen + 1)
					}
					table = append(table, int32(i))
				}
				p.Add(append(table, int32(blocks-1-s)), prompt+10, 1)
			}
			x := engine.NewFrozen(dev, "x", samples, o.Heads*dim).Tensor
			kv := engine.NewFrozen(dev, "kv", samples, o.KVHeads*dim).Tensor
			b.ReportAllocs()
			for b.Loop() {
				tape.Reset()
				Decode(tape, x, kv, kv, nil, c, &p)
			}
			flops := 4 * samples * o.Heads * dim * (prompt + 11)
			b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
