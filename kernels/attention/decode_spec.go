package attention

import (
	"math"

	"caper/engine"
)

// The specification of decoding, in float64: keys and values are stored first, then
// every row is what spec.go says, its path being the places up to its own.

func specDecode(q, k, v, gate, y *engine.Tensor, c *Cache, p *Places) {
	for i := range q.Rows {
		for h := range c.o.KVHeads {
			block, at := p.place(i, int(p.Position[i]))
			copy(c.value(block, at, h), head(v, i, h, c.o.Dim))
			for e, x := range head(k, i, h, c.o.Dim) {
				c.keys.F64[c.keyRow(block, h, e)*BlockLen+at] = x
			}
		}
	}
	scale := 1 / math.Sqrt(float64(c.o.Dim))
	for i := range q.Rows {
		for h := range c.o.Heads {
			kv := h / (c.o.Heads / c.o.KVHeads)
			weights, sum := make([]float64, p.Position[i]+1), 0.0
			for j := range weights {
				block, at := p.place(i, j)
				for e, x := range head(q, i, h, c.o.Dim) {
					weights[j] += scale * x * c.keys.F64[c.keyRow(block, kv, e)*BlockLen+at]
				}
			}
			top := math.Inf(-1)
			for _, s := range weights {
				top = math.Max(top, s)
			}
			for j := range weights {
				weights[j] = math.Exp(weights[j] - top)
				sum += weights[j]
			}
			out := head(y, i, h, c.o.Dim)
			clear(out)
			for j, w := range weights {
				block, at := p.place(i, j)
				axpy(out, w/sum, c.value(block, at, kv))
			}
			if gate != nil {
				for e, z := range c.o.gateOf(gate, i, h) {
					out[e] *= sigmoid(z)
				}
			}
		}
	}
}

// place returns the block of a position in the sequence of a row, and where in it.
func (p *Places) place(row, position int) (block, at int) {
	return int(p.Blocks[int(p.Table[row])+position/BlockLen]), position % BlockLen
}

func (c *Cache) keyRow(block, head, element int) int {
	return (block*c.o.KVHeads+head)*c.o.Dim + element
}

func (c *Cache) value(block, at, head int) []float64 {
	from := ((block*c.o.KVHeads+head)*BlockLen + at) * c.o.Dim
	return c.values.F64[from : from+c.o.Dim]
}
