package attention

import (
	"fmt"

	"caper/engine"
)

// BlockLen is how many positions of a sequence a block of a Cache holds.
const BlockLen = blockLen

// Cache keeps the keys and values of one layer for tokens that are yet to come. It
// is cut into numbered blocks of BlockLen positions; a sequence is a table of blocks,
// and sequences that begin alike have the same blocks at the start of their tables.
// Who may use which block is the caller's business.
type Cache struct {
	o      Options
	blocks int
	gpu    *engine.GPU // that holds the cache, or nil
	// keys [blocks*KVHeads*Dim, BlockLen] has a position per column, values
	// [blocks*KVHeads*BlockLen, Dim] one per row: products with either then run along
	// rows. On a GPU both have one per row, [blocks*KVHeads*BlockLen, Dim].
	keys, values *engine.Tensor
}

// NewCache returns a cache on dev, of 2*blocks*BlockLen*KVHeads*Dim elements.
func NewCache(dev engine.Device, blocks int, o Options) *Cache {
	return &Cache{o, blocks, engine.GPUOf(dev),
		engine.NewFrozen(dev, "keys", blocks*o.KVHeads*o.Dim, BlockLen).Tensor,
		engine.NewFrozen(dev, "values", blocks*o.KVHeads*BlockLen, o.Dim).Tensor,
	}
}

// Bytes returns the memory that c takes.
func (c *Cache) Bytes() int { return int(engine.Tensors{c.keys, c.values}.Bytes()) }

// CopyBlock copies the first n positions of block from into block to.
func (c *Cache) CopyBlock(to, from int32, n int) {
	if c.gpu != nil {
		cudaCopyBlock(c.gpu, c, to, from, n)
		return
	}
	for _, x := range []struct {
		*engine.Tensor
		n int // elements of a row to copy
	}{{c.keys, n}, {c.values, c.o.Dim}} {
		rows := x.Rows / c.blocks
		for r := range rows {
			if x.Tensor == c.values && r%BlockLen >= n {
				continue
			}
			d, s := (int(to)*rows+r)*x.Stride, (int(from)*rows+r)*x.Stride
			if x.F32 != nil {
				copy(x.F32[d:d+x.n], x.F32[s:s+x.n])
			} else {
				copy(x.F64[d:d+x.n], x.F64[s:s+x.n])
			}
		}
	}
}

// Places says where in a cache the tokens of a batch belong. Rows of one sequence
// must follow each other in the order of their positions.
type Places struct {
	// Position of each row in its sequence, and where in Blocks the table of its
	// sequence starts, [N].
	Position, Table []int32
	// Blocks holds the tables, one behind the other.
	Blocks []int32
	// Bundles of neighbouring rows are computed together: bundle b begins at row
	// First[b], and all its rows have the first Shared[b] blocks in common, each of
	// them full. This is where samples of one prompt read it once.
	First, Shared []int32
}

// Reset empties p and keeps its memory.
func (p *Places) Reset() {
	p.Position, p.Table, p.Blocks = p.Position[:0], p.Table[:0], p.Blocks[:0]
	p.First, p.Shared = p.First[:0], p.Shared[:0]
}

// Add appends n rows of the sequence with this table, from position first on.
func (p *Places) Add(table []int32, first, n int) {
	at := int32(len(p.Blocks))
	p.Blocks = append(p.Blocks, table[:(first+n-1)/BlockLen+1]...)
	for i := range n {
		p.Position, p.Table = append(p.Position, int32(first+i)), append(p.Table, at)
		p.bundle()
	}
}

// bundleRows is the most rows of a bundle: fewer make more tasks, more share more.
const bundleRows = 16

// bundle puts the last row in the last bundle if that keeps half of what its rows
// share, else into a new one. How rows are bundled does not change the results.
func (p *Places) bundle() {
	row, b := len(p.Position)-1, len(p.First)-1
	full := p.Position[row] / BlockLen
	if b >= 0 && row-int(p.First[b]) < bundleRows {
		first, own := p.Blocks[p.Table[p.First[b]]:], p.Blocks[p.Table[row]:]
		common := int32(0)
		for common < min(full, p.Shared[b]) && first[common] == own[common] {
			common++
		}
		if 2*common >= max(full, p.Shared[b]) {
			p.Shared[b] = common
			return
		}
	}
	p.First, p.Shared = append(p.First, int32(row)), append(p.Shared, full)
}

// Decode is Forward for tokens whose predecessors are in a cache: it writes the rows'
// keys and values to their places, then returns the output of every head for the
// rows, [N, Heads*Dim]. q, k, v and gate are as for Forward. There is no backward
// pass. A row's result has the same bits whatever else is in the batch.
func Decode(t *engine.Tape, q, k, v, gate *engine.Tensor, c *Cache, p *Places) *engine.Tensor {
	if !t.Inference {
		panic("attention: decoding has no backward pass: set the tape's Inference")
	}
	c.check(q, k, v, gate, p)
	o := engine.NewOp[decodeOp](t)
	*o = decodeOp{q: q, k: k, v: v, gate: gate, y: t.New(q.Rows, q.Cols), c: c, p: p}
	t.Run(o)
	return o.y
}

type decodeOp struct {
	engine.NoBackward
	q, k, v, gate, y *engine.Tensor
	c                *Cache
	p                *Places
}

func (o *decodeOp) Forward(t *engine.Tape) {
	switch {
	case t.Reference():
		specDecode(o.q, o.k, o.v, o.gate, o.y, o.c, o.p)
	case t.CPU():
		cpuDecode(t, o.q, o.k, o.v, o.gate, o.y, o.c, o.p)
	case t.CUDA():
		cudaDecode(t, o)
	}
}

func (o *decodeOp) Cost() engine.Cost {
	pairs := 0
	for _, p := range o.p.Position {
		pairs += int(p) + 1
	}
	head := o.c.o.KVHeads * len(o.p.Blocks)
	return engine.Cost{
		Operator: "attention.decode",
		Reads:    engine.Tensors{o.q, o.k, o.v, o.gate, o.c.keys.Touched(head * o.c.o.Dim), o.c.values.Touched(head * BlockLen)},
		Writes:   engine.Tensors{o.y},
		Forward:  2 * engine.ProductFLOPs(pairs, o.c.o.Heads, o.c.o.Dim),
	}
}

func (c *Cache) check(q, k, v, gate *engine.Tensor, p *Places) {
	n, o := len(p.Position), c.o
	ok := o.Dim > 0 && o.Dim <= maxDim && o.KVHeads > 0 && o.Heads%o.KVHeads == 0 && o.Heads/o.KVHeads <= maxGroup &&
		q.Rows == n && q.Cols == o.Heads*o.Dim && k.Rows == n && k.Cols == o.KVHeads*o.Dim && v.Rows == n && v.Cols == k.Cols
	if gate != nil {
		ok = ok && gate.Rows == n && gate.Cols >= (o.Heads-1)*o.GateStride+o.GateOffset+o.Dim
	}
	for _, b := range p.Blocks {
		ok = ok && b >= 0 && int(b) < c.blocks
	}
	if !ok {
		panic(fmt.Sprintf("attention: q %s, k %s, v %s, gate %v, %d places do not fit %+v and a cache of %d blocks (Dim at most %d, %d query heads a key head)",
			q, k, v, gate, n, o, c.blocks, maxDim, maxGroup))
	}
}
