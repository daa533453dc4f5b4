package attention

import (
	"caper/cuda"
	"caper/engine"
)

var (
	decodeStore   = source.Kernel("attention_decode_store")
	decodeSplits  = newFamily("decode")
	decodeCombine = source.Kernel("attention_decode_combine")
	copyBlock     = source.Kernel("attention_copy_block")
)

// splitMemory bounds what the splits of a pass leave for each other, in bytes.
const splitMemory = 64 << 20

// decodeShared is the dynamic shared memory of attention_decode in bytes.
func decodeShared(width int) int { return 128*max(width, splitLen) + 256*width }

func cudaDecode(t *engine.Tape, o *decodeOp) {
	c, p, n := o.c, o.p, o.q.Rows
	c.o.checkCUDA()
	if n == 0 {
		return
	}
	type key struct {
		places *Places
		group  int
	}
	splitBytes := 4 * c.o.Heads * (c.o.Dim + 2) // of a row
	work := engine.Once(t, key{p, c.o.group()}, func(u *units) { u.build(p, c.o.group(), splitMemory/splitBytes) })
	position, table, blocks := t.Ints(p.Position), t.Ints(p.Table), t.Ints(p.Blocks)
	list, slots := t.Ints(work.list), t.Ints(work.slots)
	t.Launch(decodeStore, engine.Blocks((n*c.o.KVHeads+7)/8, 256), t.Args().
		Tensor(o.k).Tensor(o.v).Tensor(c.keys).Tensor(c.values).Stride(o.k).Stride(o.v).
		Ptr(position).Ptr(table).Ptr(blocks).Int(n).Int(c.o.KVHeads).Int(c.o.Dim))

	splits := 0
	for _, pass := range work.passes {
		splits = max(splits, pass.splits)
	}
	sums := t.Workspace(4 * splits * c.o.Heads * c.o.Dim)
	statistics := t.Workspace(4 * splits * c.o.Heads * 2)
	width := headWidth(c.o.Dim)
	for _, pass := range work.passes {
		a := t.Args().Tensor(o.q).Tensor(c.keys).Tensor(c.values).Stride(o.q)
		c.o.shape(a)
		t.Launch(decodeSplits[width], c.o.blocks(pass.units, 128, decodeShared(width)), a.Ptr(list+cuda.Ptr(16*pass.unit)).
			Ptr(position).Ptr(table).Ptr(blocks).Ptr(slots).Ptr(sums).Ptr(statistics))
		t.Launch(decodeCombine, engine.Blocks((pass.rows*c.o.Heads+7)/8, 256), t.Args().
			Ptr(sums).Ptr(statistics).Ptr(c.o.gateAt(o.gate)).Tensor(o.y).Stride(o.gate).Stride(o.y).Int(c.o.GateStride).
			Ptr(position).Ptr(slots).Int(pass.row).Int(pass.row+pass.rows).Int(c.o.Heads).Int(c.o.Dim))
	}
}

// cudaCopyBlock is CopyBlock on a GPU.
func cudaCopyBlock(g *engine.GPU, c *Cache, to, from int32, n int) {
	g.Launch(copyBlock, engine.Blocks(c.o.KVHeads, 256), g.Args().
		Tensor(c.keys).Tensor(c.values).Int64(int(to)).Int64(int(from)).Int(n).Int(c.o.KVHeads).Int(c.o.Dim))
}
