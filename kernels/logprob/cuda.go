package logprob

import (
	_ "embed"
	"slices"

	"caper/cuda"
	"caper/engine"
)

//go:embed op.cu
var text string

var (
	source   = engine.NewKernelText("kernels/logprob/op.cu", text)
	gather   = source.Kernel("logprob_gather")
	fold     = source.Kernel("logprob_fold")
	gradient = source.Kernel("logprob_gradient")
	scatter  = source.Kernel("logprob_scatter")
)

// On a GPU, logits are formed for gpuPairs pairs and gpuWords words at a time: enough for the
// products to fill a large card, and few enough (32 MiB) to stay in its cache until they are
// read.
var gpuPairs, gpuWords = 1024, 8192

// threads of a block, as many as have n groups of `each` columns, in whole warps.
func threads(n, each int) int { return min((n+32*each-1)/(32*each)*32, 256) }

// block is pairs [first, first+pairs) with the rows of hidden that they are about, and a chunk
// of the vocabulary, words [word, word+words), with its weights and logits.
type block struct {
	first, pairs, word, words int
	x, head, logits           *engine.Tensor
}

// eachBlock calls begin for every block of pairs, chunk for every chunk of words under it, and
// end. It has formed the logits before chunk, unless they are kept from the forward pass.
func (o *op) eachBlock(t *engine.Tape, dy *engine.Tensor, begin func(b *block), chunk func(b *block), end func(b *block)) {
	pairs, words := min(len(o.rows), gpuPairs), min(o.head.Rows, gpuWords)
	x := t.WorkMatrix(pairs, o.hidden.Cols)
	var logits *engine.Tensor
	if o.logits == nil {
		logits = t.WorkFloat32(pairs, words)
	}
	for first := 0; first < len(o.rows); first += pairs {
		b := block{first: first, pairs: min(pairs, len(o.rows)-first)}
		b.x = t.Rows(x, 0, b.pairs)
		var used *engine.Tensor
		if dy != nil {
			used = t.Rows(dy, first, b.pairs)
		}
		t.Launch(gather, engine.Blocks(b.pairs, threads(o.hidden.Cols, 8)), t.Args().
			Tensor(o.hidden).Ptr(o.pairs(t, o.rows, first)).Tensor(used).Tensor(b.x).Int(o.hidden.Cols).Stride(o.hidden).Stride(used).Stride(b.x))
		begin(&b)
		for b.word = 0; b.word < o.head.Rows; b.word += words {
			b.words = min(words, o.head.Rows-b.word)
			b.head = t.Rows(o.head, b.word, b.words)
			if o.logits != nil {
				b.logits = t.Columns(t.Rows(o.logits, first, b.pairs), b.word, b.words)
			} else {
				b.logits = t.Columns(t.Rows(logits, 0, b.pairs), 0, b.words)
			}
			if o.logits == nil || dy == nil {
				t.GPU().MatMul(b.logits, engine.Operand{Tensor: b.x}, engine.Operand{Tensor: b.head, Transposed: true}, false)
			}
			chunk(&b)
		}
		end(&b)
	}
}

// pairs is the address of a per-pair array on the GPU, from a pair on.
func (o *op) pairs(t *engine.Tape, x []int32, first int) cuda.Ptr {
	return t.Ints(x) + cuda.Ptr(4*first)
}

func cudaForward(t *engine.Tape, o *op) {
	var running cuda.Ptr
	o.eachBlock(t, nil, func(b *block) {
		if running == 0 {
			running = t.Workspace(3 * 4 * b.pairs)
		}
	}, func(b *block) {
		y, lse := t.Rows(o.y, b.first, b.pairs), t.Rows(o.lse, b.first, b.pairs)
		t.Launch(fold, engine.Blocks(b.pairs, threads(b.words, 4)), t.Args().
			Tensor(b.logits).Ptr(o.pairs(t, o.targets, b.first)).Ptr(running).Tensor(y).Tensor(lse).
			Int(b.words).Int(b.word).Int(o.head.Rows).Stride(b.logits).Stride(y).Stride(lse))
	}, func(*block) {})
}

func cudaBackward(t *engine.Tape, o *op, dy, dhidden, dhead *engine.Tensor) {
	dz := t.WorkMatrix(min(len(o.rows), gpuPairs), min(o.head.Rows, gpuWords))
	var dx *engine.Tensor
	var byRow *pairsByRow
	if dhidden != nil {
		dx = t.WorkFloat32(dz.Rows, o.hidden.Cols)
		byRow = engine.Once(t, o, func(p *pairsByRow) { p.sort(o.rows) })
	}
	o.eachBlock(t, dy, func(*block) {}, func(b *block) {
		d := t.Columns(t.Rows(dz, 0, b.pairs), 0, b.words)
		dy, lse := t.Rows(dy, b.first, b.pairs), t.Rows(o.lse, b.first, b.pairs)
		n := threads(b.words, 4)
		l := engine.Blocks(b.pairs, n)
		l.Grid.Y = uint32((b.words + 4*n - 1) / (4 * n))
		t.Launch(gradient, l, t.Args().
			Tensor(b.logits).Ptr(o.pairs(t, o.targets, b.first)).Tensor(dy).Tensor(lse).Tensor(d).
			Int(b.words).Int(b.word).Stride(b.logits).Stride(dy).Stride(lse).Stride(d))
		if dx != nil {
			t.GPU().MatMul(t.Rows(dx, 0, b.pairs), engine.Operand{Tensor: d}, engine.Operand{Tensor: b.head}, b.word > 0)
		}
		if dhead != nil {
			t.GPU().MatMul(t.Rows(dhead, b.word, b.words), engine.Operand{Tensor: d, Transposed: true}, engine.Operand{Tensor: b.x}, true)
		}
	}, func(b *block) {
		if dx == nil {
			return
		}
		i := b.first / gpuPairs
		from, to := int(byRow.blocks[i]), int(byRow.blocks[i+1])
		t.Launch(scatter, engine.Blocks(to-from-1, threads(o.hidden.Cols, 8)), t.Args().
			Tensor(dx).Ptr(o.pairs(t, byRow.order, b.first)).Ptr(o.pairs(t, byRow.starts, from)).Ptr(o.pairs(t, o.rows, b.first)).Tensor(dhidden).
			Int(o.hidden.Cols).Stride(dx).Stride(dhidden))
	})
}

// pairsByRow sorts the pairs of each block by their rows, so that what several pairs add to
// one row is added in their order.
type pairsByRow struct {
	order  []int32 // pairs, counted from their block's first
	starts []int32 // for each block: where pairs of another row begin in order, and its end
	blocks []int32 // where each block begins in starts, and the end
}

func (p *pairsByRow) sort(rows []int32) {
	p.order, p.starts, p.blocks = p.order[:0], p.starts[:0], append(p.blocks[:0], 0)
	for first := 0; first < len(rows); first += gpuPairs {
		own := rows[first:min(first+gpuPairs, len(rows))]
		for n := range own {
			p.order = append(p.order, int32(n))
		}
		order := p.order[first:]
		slices.SortStableFunc(order, func(a, b int32) int { return int(own[a] - own[b]) })
		for i, n := range order {
			if i == 0 || own[n] != own[order[i-1]] {
				p.starts = append(p.starts, int32(i))
			}
		}
		p.starts = append(p.starts, int32(len(order)))
		p.blocks = append(p.blocks, int32(len(p.starts)))
	}
}
