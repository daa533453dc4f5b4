package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// matrix returns a view of rows x cols random numbers inside a wider matrix of NaN,
// so that a read beside the view shows in the result.
func matrix(r *rand.Rand, rows, cols, gap int) *Tensor {
	x := &Tensor{Rows: rows, Cols: cols, Stride: cols + gap, F32: make([]float32, rows*(cols+gap))}
	poison(x.F32)
	for i := range rows {
		for j := range cols {
			x.Set(i, j, r.NormFloat64())
		}
	}
	return x
}

// product64 returns op(a) op(b) at (i, j) in float64 and the sum of the absolute
// values of its terms, the scale of the rounding error.
func product64(a, b Operand, i, j, k int) (sum, scale float64) {
	at := func(o Operand, i, j int) float64 {
		if o.Transposed {
			return o.At(j, i)
		}
		return o.At(i, j)
	}
	for p := range k {
		x := at(a, i, p) * at(b, p, j)
		sum += x
		scale += math.Abs(x)
	}
	return sum, scale
}

// All transpose forms, sizes around the tile and block edges, row strides and the
// accumulate flag, against float64; and one thread against three, bit for bit.
func TestMatMul(t *testing.T) {
	one, three := CPU(1), CPU(3)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(1, 40), rapid.SampledFrom([]int{63, 64, 65, 255, 256, 257, 340}))
		m, n, k := size.Draw(t, "m"), size.Draw(t, "n"), rapid.OneOf(size, rapid.Just(0)).Draw(t, "k")
		gap := rapid.IntRange(0, 3).Draw(t, "gap")
		accumulate := rapid.Bool().Draw(t, "accumulate")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		operand := func(rows, cols int, transposed bool) Operand {
			if transposed {
				rows, cols = cols, rows
			}
			return Operand{matrix(r, rows, cols, gap), transposed}
		}
		a := operand(m, k, rapid.Bool().Draw(t, "ta"))
		b := operand(k, n, rapid.Bool().Draw(t, "tb"))
		c := matrix(r, m, n, gap)
		before := append([]float32(nil), c.F32...)
		again := *c
		again.F32 = append([]float32(nil), c.F32...)

		MatMul(one, c, a, b, accumulate)
		MatMul(three, &again, a, b, accumulate)
		for i := range c.F32 {
			if math.Float32bits(c.F32[i]) != math.Float32bits(again.F32[i]) {
				t.Fatalf("element %d: %g with one thread, %g with three", i, c.F32[i], again.F32[i])
			}
		}
		for i := range m {
			for j := range c.Stride {
				if i*c.Stride+j >= len(c.F32) {
					break
				}
				was, got := before[i*c.Stride+j], c.F32[i*c.Stride+j]
				if j >= n {
					if math.Float32bits(was) != math.Float32bits(got) {
						t.Fatalf("wrote %g beside C, at (%d, %d)", got, i, j)
					}
					continue
				}
				want, scale := product64(a, b, i, j, k)
				if accumulate {
					want += float64(was)
					scale += math.Abs(float64(was))
				}
				// k roundings of 2^-24 each add up like a random walk; 1e-6 covers k = 340.
				if !(math.Abs(float64(got)-want) <= 1e-6*scale) {
					t.Fatalf("(%d, %d) of %s %s accumulate=%v: got %g, want %g", i, j, a, b, accumulate, got, want)
				}
			}
		}
	})
}

// A row of the product is the same bits alone and among others: what makes the
// score of a token independent of the batch it is in.
func TestMatMulRowIndependence(t *testing.T) {
	dev := CPU(2)
	r := rand.New(rand.NewPCG(1, 2))
	const m, n, k = 61, 150, 700
	a, b := matrix(r, m, k, 0), matrix(r, n, k, 0)
	all := matrix(r, m, n, 0)
	MatMul(dev, all, Operand{a, false}, Operand{b, true}, false)
	for _, rows := range []int{1, 2, 5, 13, 14, 15, 29} {
		for from := 0; from+rows <= m; from += rows {
			some := matrix(r, rows, n, 0)
			part := &Tensor{Rows: rows, Cols: k, Stride: k, F32: a.F32[from*k:]}
			MatMul(dev, some, Operand{part, false}, Operand{b, true}, false)
			for i := range some.F32 {
				if some.F32[i] != all.F32[from*n+i] {
					t.Fatalf("rows %d..%d alone differ from the same rows among %d", from, from+rows, m)
				}
			}
		}
	}
}

// Several goroutines share one pool.
func TestMatMulConcurrent(t *testing.T) {
	dev := CPU(2)
	r := rand.New(rand.NewPCG(3, 4))
	a, b := matrix(r, 150, 130, 0), matrix(r, 130, 140, 0)
	want := matrix(r, 150, 140, 0)
	MatMul(dev, want, Operand{a, false}, Operand{b, false}, false)
	wrong := make(chan int, 4)
	for range cap(wrong) {
		c := matrix(r, 150, 140, 0)
		go func() {
			bad := 0
			for range 50 {
				MatMul(dev, c, Operand{a, false}, Operand{b, false}, false)
				for i := range c.F32 {
					if c.F32[i] != want.F32[i] {
						bad++
					}
				}
			}
			wrong <- bad
		}()
	}
	for range cap(wrong) {
		if n := <-wrong; n > 0 {
			t.Errorf("%d elements differ when goroutines share the pool", n)
		}
	}
}

func BenchmarkMatMul(b *testing.B) {
	for _, s := range []struct{ m, n, k int }{
		{1024, 1024, 1024}, {1500, 256, 256}, {1500, 768, 256}, {1500, 256, 768}, {1500, 8, 256}, {64, 256, 256}, {1, 1024, 1024}, {64, 64, 64},
	} {
		for _, form := range []struct {
			name   string
			ta, tb bool
		}{{"NT", false, true}, {"NN", false, false}, {"TN", true, false}} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%dx%dx%d-%s/threads=%d", s.m, s.n, s.k, form.name, threads), func(b *testing.B) {
					dev := CPU(threads)
					r := rand.New(rand.NewPCG(5, 6))
					x, y, z := matrix(r, s.m, s.k, 0), matrix(r, s.k, s.n, 0), matrix(r, s.m, s.n, 0)
					if form.ta {
						x = matrix(r, s.k, s.m, 0)
					}
					if form.tb {
						y = matrix(r, s.n, s.k, 0)
					}
					b.ReportAllocs()
					for b.Loop() {
						MatMul(dev, z, Operand{x, form.ta}, Operand{y, form.tb}, false)
					}
					flops := 2 * float64(s.m) * float64(s.n) * float64(s.k) * float64(b.N)
					b.ReportMetric(flops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}
