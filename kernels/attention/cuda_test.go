package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"caper/cuda/emulator"
	"caper/engine"
	"caper/kernels/optest"
	"caper/kernels/treetest"
)

var kernels = optest.Kernels{
	File: "kernels/attention/op.cu",
	Registers: map[string]int{
		"attention_forward_64": 168, "attention_forward_128": 208, "attention_forward_256": 248,
		"attention_forward_hopper_64": 168, "attention_forward_hopper_128": 168, "attention_forward_hopper_256": 168,
		"attention_backward_rows":       48,
		"attention_backward_queries_64": 136, "attention_backward_queries_128": 184, "attention_backward_queries_256": 224,
		"attention_backward_keys_64": 152, "attention_backward_keys_128": 208, "attention_backward_keys_256": 248,
		"attention_decode_store": 40, "attention_copy_block": 40, "attention_decode_combine": 56,
		"attention_decode_64": 136, "attention_decode_128": 136, "attention_decode_256": 136,
	},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

// A problem for the kernels: heads on a tree, and what the queries are multiplied by.
type problem struct {
	treetest.Shape
	o         Options
	sharpness float64
}

func (p problem) String() string {
	return fmt.Sprintf("%s, %d/%d heads of %d, gate %t, sharpness %g: ", p.Name, p.o.Heads, p.o.KVHeads, p.o.Dim, p.o.GateStride > 0, p.sharpness)
}

// problems covers the trees of treetest with each size of heads, groups of heads that divide a tile and
// that do not, heads smaller than what they are computed as, and scores that make of the
// softmax a choice of one.
func problems(races bool) []problem {
	gate := func(o Options) Options {
		o.GateStride, o.GateOffset = 2*o.Dim, o.Dim
		return o
	}
	if races {
		return []problem{
			{shapeOf("ladder"), gate(Options{Heads: 2, KVHeads: 1, Dim: 64}), 1},
			{treetest.Shape{Name: "small branches", Parents: []int{-1, 0, 0}, Lengths: []int{66, 3, 1}}, Options{Heads: 1, KVHeads: 1, Dim: 8}, 1},
			// More tiles of keys than a ring of the path for Hopper has stages.
			{treetest.Shape{Name: "long", Parents: []int{-1}, Lengths: []int{5*tileLen + 1}}, Options{Heads: 1, KVHeads: 1, Dim: 64}, 1},
		}
	}
	list := []problem{
		{shapeOf("chunk borders"), gate(Options{Heads: 2, KVHeads: 1, Dim: 128}), 1},
		{shapeOf("prompt"), gate(Options{Heads: 4, KVHeads: 2, Dim: 256}), 1},
		{shapeOf("trees"), Options{Heads: 2, KVHeads: 2, Dim: 24}, 1},
		{shapeOf("around a chunk"), gate(Options{Heads: 2, KVHeads: 1, Dim: 64}), 1e4},
	}
	for _, s := range treetest.Shapes {
		list = append(list, problem{s, Options{Heads: 3, KVHeads: 1, Dim: 64}, 1})
	}
	if testing.Short() {
		list = list[:4]
	}
	return list
}

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, p := range problems(d.Races) {
			p.prove(d)
		}
		for _, p := range decodings(d.Races) {
			p.prove(d)
		}
	})
}

// inputs are what attention takes, and the gradient of its output.
type inputs struct{ q, k, v, gate, dy []float64 }

func (p problem) draw() inputs {
	rows, r := p.Tree().Rows(), rand.New(rand.NewPCG(uint64(p.o.Heads), uint64(p.o.Dim)))
	draw := func(cols int, deviation float64) []float64 {
		x := make([]float64, rows*cols)
		for i := range x {
			x[i] = optest.RoundBF16(deviation * r.NormFloat64())
		}
		return x
	}
	heads, kv := p.o.Heads*p.o.Dim, p.o.KVHeads*p.o.Dim
	in := inputs{q: draw(heads, p.sharpness), k: draw(kv, 1), v: draw(kv, 1), dy: draw(heads, 1)}
	if p.o.GateStride > 0 {
		in.gate = draw(p.o.Heads*p.o.GateStride, 1)
	}
	return in
}

// specification runs spec.go: the output and the gradients of q, k, v and gate.
func (p problem) specification(in inputs) (y []float64, gradients [4][]float64) {
	tree, tape := p.Tree(), engine.NewTape(engine.Reference())
	tensor := func(values []float64) *engine.Tensor {
		if values == nil {
			return nil
		}
		x := tape.New(tree.Rows(), len(values)/tree.Rows())
		copy(x.F64, values)
		return x
	}
	of := []*engine.Tensor{tensor(in.q), tensor(in.k), tensor(in.v), tensor(in.gate)}
	out := Forward(tape, of[0], of[1], of[2], of[3], tree, p.o)
	copy(tape.AddTo(out).F64, in.dy)
	tape.Backward()
	for i, x := range of {
		if x != nil {
			gradients[i] = tape.Gradient(x).F64
		}
	}
	return out.F64, gradients
}

// Rounding to bf16 loses up to 2^-9 of an element: of weights, which are near 1 where a row sees few others and then
// meet values of size 3, ten times what an element is where it sees many; of outputs; and in gradients of the
// differences that make them up.
const rounding = 1.0 / 512

// card is a problem in the emulated card's memory.
type card struct {
	*optest.EmulatedGPU
	problem
	rows, width       int // width is the columns that a head is computed as
	q, k, v, gate, y  optest.Matrix
	gates             unsafe.Pointer // the first head's
	lse               *emulator.Memory
	tiles             tiles
	queries, wide     *emulator.Memory
	keys, lists, ends *emulator.Memory
	scale             float32
}

func (p problem) on(d *optest.EmulatedGPU, in inputs) *card {
	tree := p.Tree()
	n := tree.Rows()
	c := &card{EmulatedGPU: d, problem: p, rows: n, width: 64, scale: float32(math.Log2E / math.Sqrt(float64(p.o.Dim)))}
	for c.width < p.o.Dim {
		c.width *= 2
	}
	matrix := func(x []float64) optest.Matrix { return d.Matrix(n, len(x)/n, x) }
	c.q, c.k, c.v = matrix(in.q), matrix(in.k), matrix(in.v)
	if in.gate != nil {
		c.gate = matrix(in.gate)
		c.gates = c.gateAt(c.gate)
	}
	c.y, c.lse = d.Matrix(n, p.o.Heads*p.o.Dim, nil), d.NewFloat32(n*p.o.Heads)
	c.tiles.build(tree, p.o.Heads/p.o.KVHeads)
	c.queries, c.wide = integers(d, c.tiles.queries), integers(d, c.tiles.wide)
	c.keys, c.lists, c.ends = integers(d, c.tiles.keys), integers(d, c.tiles.lists), integers(d, c.tiles.ends)
	return c
}

func integers(d *optest.EmulatedGPU, x []int32) *emulator.Memory {
	m := d.NewFloat32(max(len(x), 1))
	copy(emulator.Of[int32](m), x)
	return m
}

// gateAt returns where the first head's gate is in a matrix of gates.
func (c *card) gateAt(m optest.Matrix) unsafe.Pointer {
	return unsafe.Add(m.Pointer(), 2*c.o.GateOffset)
}

func (c *card) stride(m optest.Matrix) int64 { return int64(m.Stride) }

// shape is the arguments that say how heads lie.
func (c *card) shape() []any {
	return []any{int32(c.o.Heads), int32(c.o.KVHeads), int32(c.o.Dim), c.scale}
}

func (c *card) launch(kernel string, threads, second, shared int, args ...any) {
	c.Helper()
	l := emulator.Launch{Grid: [3]int{c.o.KVHeads, second}, Block: [3]int{threads}, Shared: shared}
	c.Launch(fmt.Sprintf("attention_%s_%d", kernel, c.width), l, args...)
}

func (c *card) forwardArguments(queries *emulator.Memory) []any {
	args := []any{c.q.Memory, c.k.Memory, c.v.Memory, c.gates, c.y.Memory, c.lse,
		c.stride(c.q), c.stride(c.k), c.stride(c.v), c.stride(c.gate), c.stride(c.y), int32(c.o.GateStride)}
	return append(append(args, c.shape()...), queries, c.keys, c.lists)
}

func (c *card) forward() {
	c.Helper()
	c.launch("forward", 128, len(c.tiles.queries)/4, 384*c.width, c.forwardArguments(c.queries)...)
}

func (c *card) forwardHopper() {
	c.Helper()
	args := []any{c.TensorMap(c.k, tileLen, 64), c.TensorMap(c.v, tileLen, 64)}
	c.launch("forward_hopper", 384, len(c.tiles.wide)/4, hopperShared(c.width), append(args, c.forwardArguments(c.wide)...)...)
}

// backward returns the gradients of q, k, v and gate. With accumulate, each is added to what is in before.
func (c *card) backward(dy optest.Matrix, accumulate bool, before [4][]float64) (gradients [4]optest.Matrix) {
	c.Helper()
	add := int32(0)
	if accumulate {
		add = 1
	}
	for i, m := range []optest.Matrix{c.q, c.k, c.v, c.gate} {
		if m.Memory != nil {
			gradients[i] = c.Matrix(m.Rows, m.Cols, before[i])
		}
	}
	da, delta := dy, c.NewFloat32(c.rows*c.o.Heads)
	var gates, dgates unsafe.Pointer
	var stored *emulator.Memory
	if c.gates != nil {
		da = c.Matrix(c.rows, c.y.Cols, nil)
		gates, dgates, stored = c.gates, c.gateAt(gradients[3]), da.Memory
	}
	c.Launch("attention_backward_rows", emulator.Launch{Grid: [3]int{(c.rows*c.o.Heads + 7) / 8}, Block: [3]int{256}},
		dy.Memory, c.y.Memory, gates, stored, dgates, delta,
		c.stride(dy), c.stride(c.y), c.stride(c.gate), c.stride(da), c.stride(gradients[3]), int32(c.o.GateStride),
		int32(c.rows), int32(c.o.Heads), int32(c.o.Dim), add)
	inputs := []any{c.q.Memory, c.k.Memory, c.v.Memory, da.Memory, c.lse, delta}
	strides := []any{c.stride(c.q), c.stride(c.k), c.stride(c.v), c.stride(da)}

	args := append(slices.Clone(inputs), gradients[0].Memory)
	args = append(append(append(args, strides...), c.stride(gradients[0])), c.shape()...)
	c.launch("backward_queries", 256, len(c.tiles.queries)/4, 512*c.width+8192, append(args, c.queries, c.keys, c.lists, add)...)

	args = append(slices.Clone(inputs), gradients[1].Memory, gradients[2].Memory)
	args = append(append(append(args, strides...), c.stride(gradients[1]), c.stride(gradients[2])), c.shape()...)
	c.launch("backward_keys", 256, (c.rows+tileLen-1)/tileLen, 512*c.width+16384, append(args, c.ends, int32(c.rows), add, add)...)
	return gradients
}

func (p problem) prove(d *optest.EmulatedGPU) {
	d.Helper()
	in := p.draw()
	wantY, want := p.specification(in)
	c := p.on(d, in)
	if c.width == p.o.Dim {
		c.forwardHopper()
		d.CheckMatrix(p.String()+"y on Hopper", c.y, wantY, 8*rounding)
		c.y, c.lse = d.Matrix(c.rows, c.y.Cols, nil), d.NewFloat32(c.rows*p.o.Heads)
	}
	c.forward()
	d.CheckMatrix(p.String()+"y", c.y, wantY, 8*rounding)

	dy, accumulate := d.Matrix(c.rows, c.y.Cols, in.dy), p.o.Heads > p.o.KVHeads
	before := [4][]float64{}
	if accumulate { // to gradients that are there already
		for i, g := range want {
			for e := range g {
				before[i] = append(before[i], optest.RoundBF16(float64(e%7)-3))
				g[e] += before[i][e]
			}
		}
	} else if in.gate != nil {
		panic("the gate's gradient lies between columns that nobody stores: accumulate")
	}
	for i, g := range c.backward(dy, accumulate, before) {
		if want[i] != nil {
			tolerance := 12 * rounding // what the output has lost is in each difference that a gradient is made of
			if i == 1 {
				tolerance *= p.sharpness // where one weight is all, dk is a difference of equal numbers, times queries
			}
			d.CheckMatrix(p.String()+[]string{"dq", "dk", "dv", "dgate"}[i], g, want[i], tolerance)
		}
	}
}

// decoded is rows to decode: sequences whose last few positions are new, over prompts that they share.
type decoded struct {
	name  string
	o     Options
	start []int // of each sequence: the first new position,
	rows  []int // and how many are new
	same  []int // and how many blocks it has in common with the one before
}

func decodings(races bool) []decoded {
	if races {
		return []decoded{{"a few", Options{Heads: 2, KVHeads: 1, Dim: 64, GateStride: 64}, []int{70, 68, 0}, []int{1, 2, 1}, []int{0, 1, 0}}}
	}
	list := []decoded{
		{"samples of a prompt", Options{Heads: 8, KVHeads: 2, Dim: 64}, []int{260, 256, 300, 319, 191, 127}, []int{1, 1, 1, 1, 2, 3}, []int{0, 4, 4, 4, 2, 0}},
		{"first tokens", Options{Heads: 3, KVHeads: 1, Dim: 128, GateStride: 128}, []int{0, 63, 64}, []int{3, 2, 1}, []int{0, 0, 0}},
		{"heads of 256", Options{Heads: 4, KVHeads: 1, Dim: 256, GateStride: 512, GateOffset: 256}, []int{150, 130}, []int{1, 17}, []int{0, 2}},
		{"heads of 16", Options{Heads: 2, KVHeads: 2, Dim: 16}, []int{128}, []int{1}, []int{0}},
	}
	if testing.Short() {
		list = list[:2]
	}
	return list
}

func (p decoded) places() (places Places, blocks int) {
	var before []int32
	for i, start := range p.start {
		table := slices.Clone(before[:p.same[i]])
		for len(table)*BlockLen < start+p.rows[i] {
			table = append(table, int32(blocks))
			blocks++
		}
		places.Add(table, start, p.rows[i])
		before = table
	}
	return places, blocks
}

// prove decodes rows over a cache of random keys and values, and NaN where nobody has been.
func (p decoded) prove(d *optest.EmulatedGPU) {
	d.Helper()
	places, blocks := p.places()
	n, r := len(places.Position), rand.New(rand.NewPCG(7, 7))
	tape := engine.NewTape(engine.Reference())
	tape.Inference = true
	draw := func(cols int) (*engine.Tensor, optest.Matrix) {
		x := tape.New(n, cols)
		for i := range x.F64 {
			x.F64[i] = optest.RoundBF16(r.NormFloat64())
		}
		return x, d.Matrix(n, cols, x.F64)
	}
	q, qs := draw(p.o.Heads * p.o.Dim)
	k, ks := draw(p.o.KVHeads * p.o.Dim)
	v, vs := draw(p.o.KVHeads * p.o.Dim)
	gate, gs := (*engine.Tensor)(nil), optest.Matrix{}
	var gates unsafe.Pointer
	if p.o.GateStride > 0 {
		gate, gs = draw(p.o.Heads * p.o.GateStride)
		gates = unsafe.Add(gs.Pointer(), 2*p.o.GateOffset)
	}
	cache := NewCache(engine.Reference(), blocks, p.o)
	keys, values := d.NewBF16(blocks*p.o.KVHeads*BlockLen*p.o.Dim), d.NewBF16(blocks*p.o.KVHeads*BlockLen*p.o.Dim)
	p.fill(cache, &places, keys, values, r)
	want := Decode(tape, q, k, v, gate, cache, &places)

	group, heads, kv, dim := p.o.Heads/p.o.KVHeads, int32(p.o.Heads), int32(p.o.KVHeads), int32(p.o.Dim)
	var u units
	u.build(&places, group, 6) // several passes
	position, table, list := integers(d, places.Position), integers(d, places.Table), integers(d, places.Blocks)
	d.Launch("attention_decode_store", emulator.Launch{Grid: [3]int{(n*p.o.KVHeads + 7) / 8}, Block: [3]int{256}},
		ks.Memory, vs.Memory, keys, values, int64(ks.Stride), int64(vs.Stride), position, table, list, int32(n), kv, dim)
	width, y := headWidth(p.o.Dim), d.Matrix(n, p.o.Heads*p.o.Dim, nil)
	work, slots := integers(d, u.list), integers(d, u.slots)
	for _, pass := range u.passes {
		sums, statistics := d.NewFloat32(pass.splits*p.o.Heads*p.o.Dim), d.NewFloat32(pass.splits*p.o.Heads*2)
		d.Launch(fmt.Sprintf("attention_decode_%d", width), emulator.Launch{Grid: [3]int{p.o.KVHeads, pass.units}, Block: [3]int{128}, Shared: decodeShared(width)},
			qs.Memory, keys, values, int64(qs.Stride), heads, kv, dim, float32(math.Log2E/math.Sqrt(float64(p.o.Dim))),
			unsafe.Add(work.Pointer(), 16*pass.unit), position, table, list, slots, sums, statistics)
		d.Launch("attention_decode_combine", emulator.Launch{Grid: [3]int{(pass.rows*p.o.Heads + 7) / 8}, Block: [3]int{256}},
			sums, statistics, gates, y.Memory, int64(gs.Stride), int64(y.Stride), int32(p.o.GateStride), position, slots,
			int32(pass.row), int32(pass.row+pass.rows), heads, dim)
	}
	d.CheckMatrix(p.name, y, want.F64, 8*rounding)
}

// fill fills both caches with what precedes the new rows.
func (p decoded) fill(c *Cache, places *Places, keys, values *emulator.Memory, r *rand.Rand) {
	k, v := emulator.Of[uint16](keys), emulator.Of[uint16](values)
	random := func() (float64, uint16) {
		x := float32(optest.RoundBF16(r.NormFloat64()))
		return float64(x), uint16(math.Float32bits(x) >> 16)
	}
	row := 0
	for i, start := range p.start {
		for position := range start {
			block, at := places.place(row, position)
			for h := range p.o.KVHeads {
				for e := range p.o.Dim {
					to := ((block*p.o.KVHeads+h)*BlockLen+at)*p.o.Dim + e
					c.keys.F64[c.keyRow(block, h, e)*BlockLen+at], k[to] = random()
					c.value(block, at, h)[e], v[to] = random()
				}
			}
		}
		row += p.rows[i]
	}
}
