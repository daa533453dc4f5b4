package deltarule

import (
	"fmt"

	"caper/engine"
)

// ChunkLen is how many tokens a Cache collects before it brings a state up to date.
const ChunkLen = chunk

// Cache keeps what one layer needs to go on with sequences token by token. It has
// numbered states, and numbered open chunks: the tokens since a state, up to ChunkLen,
// with what they wrote. A state is only read until the chunk is full. So sequences
// that begin alike share the state at the end of what they share, and a token costs
// one reading of the state instead of two readings and a writing.
// Which sequence has which state and chunk is the caller's business.
type Cache struct {
	o      Options
	states *engine.Tensor // [states*ValueHeads*KeyDim, ValueDim]
	// Of the tokens in open chunks: keys, a token per column; what each wrote,
	// beta_t r_t of the specification; the logarithms of the decays. On a GPU keys are bf16,
	// as they come, and all else is float32.
	keys   *engine.Tensor // [chunks*KeyHeads*KeyDim, ChunkLen]
	writes *engine.Tensor // [chunks*ValueHeads*ChunkLen, ValueDim]
	decays *engine.Tensor // [chunks*ValueHeads, ChunkLen]
}

// NewCache returns a cache on dev.
func NewCache(dev engine.Device, states, chunks int, o Options) *Cache {
	return &Cache{o,
		engine.NewFrozenFloat32(dev, "states", states*o.ValueHeads*o.KeyDim, o.ValueDim).Tensor,
		engine.NewFrozen(dev, "keys", chunks*o.KeyHeads*o.KeyDim, ChunkLen).Tensor,
		engine.NewFrozenFloat32(dev, "writes", chunks*o.ValueHeads*ChunkLen, o.ValueDim).Tensor,
		engine.NewFrozenFloat32(dev, "decays", chunks*o.ValueHeads, ChunkLen).Tensor,
	}
}

// Bytes returns the memory that c takes.
func (c *Cache) Bytes() int { return int(engine.Tensors{c.states, c.keys, c.writes, c.decays}.Bytes()) }

// Steps says how the rows of a batch go on: step s is rows [Start[s], Start[s]+Len[s])
// of one sequence. No two steps of a batch write the same state or chunk.
type Steps struct {
	Start, Len []int32
	// From is the state that a step starts from, -1 for none: the start of a sequence.
	// To is where it leaves its own.
	From, To []int32
	// Open is the open chunk that a step's only row joins, as number Filled[s]. From
	// is the state before that chunk; To is written when the row is the chunk's last.
	// Open -1 takes the step's rows as whole chunks, the last one as far as it goes,
	// and always writes To.
	Open, Filled []int32
}

// Reset empties s and keeps its memory.
func (s *Steps) Reset() {
	s.Start, s.Len, s.From, s.To = s.Start[:0], s.Len[:0], s.From[:0], s.To[:0]
	s.Open, s.Filled = s.Open[:0], s.Filled[:0]
}

// Add appends a step of n rows as whole chunks. For results that do not depend on how
// a sequence is cut into steps, all but its last must be of a multiple of ChunkLen
// rows.
func (s *Steps) Add(n int, from, to int32) { s.add(n, from, to, -1, 0) }

// AddOpen appends a step of one row, number filled of an open chunk.
func (s *Steps) AddOpen(from, to, open, filled int32) { s.add(1, from, to, open, filled) }

func (s *Steps) add(n int, from, to, open, filled int32) {
	s.Start, s.Len = append(s.Start, int32(s.rows())), append(s.Len, int32(n))
	s.From, s.To = append(s.From, from), append(s.To, to)
	s.Open, s.Filled = append(s.Open, open), append(s.Filled, filled)
}

func (s *Steps) rows() int {
	if len(s.Start) == 0 {
		return 0
	}
	return int(s.Start[len(s.Start)-1] + s.Len[len(s.Len)-1])
}

// Decode is Forward for sequences that go on from states in c: it returns the heads'
// readings, [N, ValueHeads*ValueDim]. The inputs are as for Forward. There is no
// backward pass. A step's result has the same bits whatever else is in the batch.
func Decode(t *engine.Tape, q, k, v, g, beta *engine.Tensor, c *Cache, s *Steps) *engine.Tensor {
	c.check(q, k, v, g, beta, s)
	o := engine.NewOp[decodeOp](t)
	*o = decodeOp{q: q, k: k, v: v, g: g, beta: beta, out: t.New(v.Rows, v.Cols), c: c, s: s}
	t.Run(o)
	return o.out
}

type decodeOp struct {
	engine.NoBackward
	q, k, v, g, beta, out *engine.Tensor
	c                     *Cache
	s                     *Steps
}

func (o *decodeOp) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specDecode(o)
	case t.CPU():
		cpuDecode(t, o)
	case t.CUDA():
		cudaDecode(t, o)
	}
}

// Cost counts, for each row, two products with the state and half a chunk of keys,
// queries and writes.
func (o *decodeOp) Cost() engine.Cost {
	p := o.c.o
	row := 2*p.KeyDim*p.ValueDim + ChunkLen*(p.KeyDim+p.ValueDim)
	states := len(o.s.From) * p.ValueHeads * p.KeyDim
	return engine.Cost{
		Operator: "deltarule.decode",
		Reads:    engine.Tensors{o.q, o.k, o.v, o.g, o.beta, o.c.states.Touched(states)},
		Writes:   engine.Tensors{o.out},
		Forward:  engine.ProductFLOPs(o.q.Rows, p.ValueHeads, row),
	}
}

func (c *Cache) check(q, k, v, g, beta *engine.Tensor, s *Steps) {
	n, o := s.rows(), c.o
	shaped := func(x *engine.Tensor, cols int) bool { return x.Rows == n && x.Cols == cols }
	ok := o.KeyHeads > 0 && o.ValueHeads%o.KeyHeads == 0 && o.KeyDim <= maxDim && o.ValueDim <= maxDim &&
		shaped(q, o.KeyHeads*o.KeyDim) && shaped(k, o.KeyHeads*o.KeyDim) && shaped(v, o.ValueHeads*o.ValueDim) &&
		shaped(g, o.ValueHeads) && shaped(beta, o.ValueHeads)
	states, chunks := int32(c.states.Rows/(o.ValueHeads*o.KeyDim)), int32(c.decays.Rows/o.ValueHeads)
	for i := range s.Start {
		ok = ok && s.From[i] >= -1 && s.From[i] < states && s.To[i] >= 0 && s.To[i] < states && s.Open[i] < chunks &&
			(s.Open[i] < 0 || s.Len[i] == 1 && s.Filled[i] >= 0 && s.Filled[i] < ChunkLen)
	}
	if !ok {
		panic(fmt.Sprintf("deltarule: q %s, k %s, v %s, g %s, beta %s and %d steps do not fit %+v, %d states and %d chunks (dimensions at most %d)",
			q, k, v, g, beta, len(s.Start), o, states, chunks, maxDim))
	}
}
