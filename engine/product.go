package engine

import (
	"fmt"

	"caper/cuda"
)

// MatMul computes c = a b, or c += a b when accumulate is set, by cuBLASLt: c is [m x n], a
// [m x k] and b [k x n] after their transposition. a and b have the same type of elements, c
// has any; sums are float32.
func (g *GPU) MatMul(c *Tensor, a, b Operand, accumulate bool) {
	m, k := a.shape()
	kb, n := b.shape()
	if c.Rows != m || c.Cols != n || k != kb || a.element != b.element {
		panic(fmt.Sprintf("engine: product %s = %s %s", c, a, b))
	}
	if g.idle() || m == 0 || n == 0 {
		return
	}
	if k == 0 {
		if !accumulate {
			c.clear()
		}
		return
	}
	p := cuda.Product{
		M: m, N: n, K: k, TransA: a.Transposed, TransB: b.Transposed, In: a.element, Out: c.element,
		LDA: a.Stride, LDB: b.Stride, LDC: c.Stride, Accumulate: accumulate,
	}
	g.ask(work{kind: runProduct, product: p, at: [3]cuda.Ptr{a.at, b.at, c.at}}, nil)
}
