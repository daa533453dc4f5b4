package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// eachKernel runs a test with every kernel of every precision that the machine has.
func eachKernel(t *testing.T, test func(t *testing.T, p Precision)) {
	for _, p := range []Precision{Float32, BFloat16} {
		for _, name := range kernels(p) {
			t.Run(fmt.Sprintf("%s/%s", p, name), func(t *testing.T) {
				defer useKernel(p, kernelName(p))
				useKernel(p, name)
				test(t, p)
			})
		}
	}
}

// factor returns an element of op(x) as a product of this precision sees it.
func factor(p Precision, o Operand, i, j int) float64 {
	if o.Transposed {
		i, j = j, i
	}
	x := o.At(i, j)
	if p == Float32 {
		return x
	}
	// To 8 significant bits, ties to even, by arithmetic that the kernels do not use.
	fraction, exponent := math.Frexp(x)
	return math.Ldexp(math.RoundToEven(fraction*256), exponent-8)
}

// product64 returns op(a) op(b) at (i, j) in float64 and the sum of the absolute
// values of its terms, the scale of the rounding error.
func product64(p Precision, a, b Operand, i, j, k int) (sum, scale float64) {
	for s := range k {
		x := factor(p, a, i, s) * factor(p, b, s, j)
		sum += x
		scale += math.Abs(x)
	}
	return sum, scale
}

// All transpose forms, sizes around the tile and block edges, row strides and the
// accumulate flag, against float64; and one thread against two and three, bit for bit.
func TestMatMul(t *testing.T) {
	eachKernel(t, func(t *testing.T, p Precision) {
		devices := []Device{CPU(1, WithPrecision(p)), CPU(2, WithPrecision(p)), CPU(3, WithPrecision(p))}
		rapid.Check(t, func(t *rapid.T) {
			size := rapid.OneOf(rapid.IntRange(1, 40), rapid.SampledFrom([]int{63, 64, 65, 127, 129, 255, 256, 257, 340}))
			m, n := size.Draw(t, "m"), size.Draw(t, "n")
			k := rapid.OneOf(size, rapid.SampledFrom([]int{0, 511, 512, 515, 1030})).Draw(t, "k")
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
			before := slices.Clone(c.F32)
			checkProduct(t, r, p, devices, c, a, b, accumulate)
			checkBeside(t, c, before)
		})
	})
}

// checkProduct computes c = a b (+ c) on every device.
func checkProduct(t *rapid.T, r *rand.Rand, p Precision, devices []Device, c *Tensor, a, b Operand, accumulate bool) {
	before := *c
	before.F32 = slices.Clone(c.F32)
	MatMul(devices[0], c, a, b, accumulate)
	for _, dev := range devices[1:] {
		again := before
		again.F32 = slices.Clone(before.F32)
		MatMul(dev, &again, a, b, accumulate)
		for i := range c.F32 {
			if math.Float32bits(c.F32[i]) != math.Float32bits(again.F32[i]) {
				t.Fatalf("element %d: %g with one thread, %g with several", i, c.F32[i], again.F32[i])
			}
		}
	}
	_, k := a.shape()
	for range 200 { // of the elements; all of them would take float64 arithmetic too long
		i, j := r.IntN(c.Rows), r.IntN(c.Cols)
		want, scale := product64(p, a, b, i, j, k)
		if accumulate {
			want += before.At(i, j)
			scale += math.Abs(before.At(i, j))
		}
		// k roundings of 2^-24 each add up like a random walk; 1e-6 covers k = 1030.
		if got := c.At(i, j); !(math.Abs(got-want) <= 1e-6*scale) {
			t.Fatalf("(%d, %d) of %s %s accumulate=%v: got %g, want %g", i, j, a, b, accumulate, got, want)
		}
	}
}

// checkBeside reports a write outside the columns of c.
func checkBeside(t *rapid.T, c *Tensor, before []float32) {
	for at, was := range before {
		if got := c.F32[at]; at%c.Stride >= c.Cols && math.Float32bits(was) != math.Float32bits(got) {
			t.Fatalf("wrote %g beside C, at (%d, %d)", got, at/c.Stride, at%c.Stride)
		}
	}
}

// A row of the product is the same bits alone and among others: what makes the
// score of a token independent of the batch it is in.
func TestMatMulRowIndependence(t *testing.T) {
	eachKernel(t, func(t *testing.T, p Precision) {
		dev := CPU(2, WithPrecision(p))
		r := rand.New(rand.NewPCG(1, 2))
		const m, n, k = 83, 150, 700
		a := matrix(r, m, k, 0)
		for _, b := range []Operand{{matrix(r, n, k, 0), true}, {matrix(r, k, n, 0), false}} {
			all := matrix(r, m, n, 0)
			MatMul(dev, all, Operand{a, false}, b, false)
			for _, rows := range []int{1, 2, 5, 6, 7, 13, 14, 15, 16, 17, 29, 32, 33} {
				for from := 0; from+rows <= m; from += rows {
					some := matrix(r, rows, n, 0)
					part := &Tensor{Rows: rows, Cols: k, Stride: k, F32: a.F32[from*k:]}
					MatMul(dev, some, Operand{part, false}, b, false)
					for i := range some.F32 {
						if some.F32[i] != all.F32[from*n+i] {
							t.Fatalf("rows %d..%d alone differ from the same rows among %d", from, from+rows, m)
						}
					}
				}
			}
		}
	})
}

// Infinities and NaN pass through, also where bfloat16 would round past the largest
// number, and ties go to even.
func TestMatMulSpecialValues(t *testing.T) {
	eachKernel(t, func(t *testing.T, p Precision) {
		dev := CPU(1, WithPrecision(p))
		nan, inf := math.NaN(), math.Inf(1)
		tie := func(last float64) float64 { return 1 + last/128 + 1.0/256 } // halfway between two bfloat16
		for _, c := range []struct{ x, fp32, bf16 float64 }{
			{nan, nan, nan}, {math.Float64frombits(0x7ff0000020000000), nan, nan}, {inf, inf, inf}, {-inf, -inf, -inf},
			{math.MaxFloat32, math.MaxFloat32, inf}, {-math.MaxFloat32, -math.MaxFloat32, -inf},
			{tie(0), tie(0), 1}, {tie(1), tie(1), 1 + 2.0/128}, {-tie(2), -tie(2), -1 - 2.0/128}, {0x1p-126, 0x1p-126, 0x1p-126},
		} {
			want := c.fp32
			if p == BFloat16 {
				want = c.bf16
			}
			for _, transposed := range []bool{false, true} {
				x, one, y := NewParam(dev, "x", 1, 1), NewParam(dev, "one", 1, 1), NewParam(dev, "y", 1, 1)
				x.Set(0, 0, c.x)
				one.Set(0, 0, 1)
				MatMul(dev, y.Tensor, Operand{x.Tensor, transposed}, Operand{one.Tensor, transposed}, false)
				if got := y.At(0, 0); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Errorf("%g times 1 = %g, want %g", c.x, got, want)
				}
				MatMul(dev, y.Tensor, Operand{one.Tensor, transposed}, Operand{x.Tensor, transposed}, false)
				if got := y.At(0, 0); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Errorf("1 times %g = %g, want %g", c.x, got, want)
				}
			}
		}
	})
}

// A product allocates nothing once its thread has its workspace.
func TestMatMulAllocatesNothing(t *testing.T) {
	for _, p := range []Precision{Float32, BFloat16} {
		dev := CPU(2, WithPrecision(p))
		r := rand.New(rand.NewPCG(7, 8))
		a, b, c := matrix(r, 200, 150, 0), matrix(r, 100, 150, 0), matrix(r, 200, 100, 0)
		if n := testing.AllocsPerRun(20, func() { MatMul(dev, c, Operand{a, false}, Operand{b, true}, true) }); n != 0 {
			t.Errorf("%s: %g allocations a product", p, n)
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
