package logprob

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/logprob/op.cu",
	Registers: map[string]int{"logprob_gather": 40, "logprob_fold": 48, "logprob_gradient": 48, "logprob_scatter": 64},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

// The kernels alone, in all orders of threads; with their products, TestCUDA has them.
func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		shapes := [][3]int{{3, 5, 5}, {5, 37, 37}, {3, 700, 300}, {7, 2050, 1024}} // pairs, words, words of a chunk
		if d.Races {
			shapes = [][3]int{{3, 700, 300}}
		}
		for _, s := range shapes {
			proveSoftmax(d, s[0], s[1], s[2])
		}
		proveRows(d)
	})
}

func proveSoftmax(d *optest.EmulatedGPU, pairs, words, chunk int) {
	d.Helper()
	name := fmt.Sprintf("%d pairs, %d words: ", pairs, words)
	r := rand.New(rand.NewPCG(uint64(pairs), uint64(words)))
	z := make([][]float64, pairs)
	var wantY, wantLSE, dys []float64
	var targets []int32
	for n := range z {
		top, sum := math.Inf(-1), 0.0
		for range words {
			x := float64(float32(20 * r.NormFloat64()))
			z[n], top = append(z[n], x), max(top, x)
		}
		for _, x := range z[n] {
			sum += math.Exp(x - top)
		}
		targets = append(targets, int32(r.IntN(words)))
		wantLSE = append(wantLSE, top+math.Log(sum))
		wantY = append(wantY, z[n][targets[n]]-wantLSE[n])
		dys = append(dys, float64(float32(r.NormFloat64())))
	}
	dys[0] = 0
	y, lse, running, dy := d.NewFloat32(pairs), d.NewFloat32(pairs), d.NewFloat32(3*pairs), d.Float32(dys)
	target := optest.Copy(d, targets)
	for first := 0; first < words; first += chunk {
		n := min(chunk, words-first)
		d.Launch("logprob_fold", emulator.Launch{Grid: [3]int{pairs}, Block: [3]int{64}}, d.Float32(part(z, first, n)), target, running, y, lse,
			int32(n), int32(first), int32(words), int64(n), int64(1), int64(1))
	}
	d.CheckFloat32(name+"lse", lse, wantLSE, 1e-6)
	d.CheckFloat32(name+"y", y, wantY, 1e-6)
	for first := 0; first < words; first += chunk {
		n := min(chunk, words-first)
		want := part(z, first, n)
		for e := range want {
			pair := e / n
			p := -math.Exp(want[e] - wantLSE[pair])
			if first+e%n == int(targets[pair]) {
				p++
			}
			want[e] = dys[pair] * p
		}
		dz := d.Matrix(pairs, n, nil)
		d.Launch("logprob_gradient", emulator.Launch{Grid: [3]int{pairs, (n + 255) / 256}, Block: [3]int{64}}, d.Float32(part(z, first, n)), target, dy, lse,
			dz.Memory, int32(n), int32(first), int64(n), int64(1), int64(1), int64(dz.Stride))
		d.CheckMatrix(name+"dz", dz, want, 1.0/256)
	}
}

// part is columns [first, first+n) of all rows.
func part(z [][]float64, first, n int) []float64 {
	var x []float64
	for _, row := range z {
		x = append(x, row[first:first+n]...)
	}
	return x
}

// Rows that repeat and leave gaps; one that nobody asks a gradient of holds NaN.
func proveRows(d *optest.EmulatedGPU) {
	d.Helper()
	const cols = 21
	rows := []int32{4, 0, 2, 0, 0}
	r := rand.New(rand.NewPCG(1, 2))
	hidden, dx := optest.Normal(r, 6*cols, 1, 0), optest.Normal(r, len(rows)*cols, 1, 0)
	dhidden, wantX := optest.Normal(r, 6*cols, 1, 0), []float64(nil)
	sum := append([]float64(nil), dhidden...)
	for c := range cols {
		hidden[2*cols+c] = math.NaN()
	}
	for n, row := range rows {
		for c := range cols {
			x := hidden[int(row)*cols+c]
			if row == 2 {
				x = 0
			}
			wantX = append(wantX, x)
			sum[int(row)*cols+c] += dx[n*cols+c]
		}
	}
	h, x, at := d.Matrix(6, cols, hidden), d.Matrix(len(rows), cols, nil), optest.Copy(d, rows)
	d.Launch("logprob_gather", emulator.Launch{Grid: [3]int{len(rows)}, Block: [3]int{32}}, h.Memory, at, d.Float32([]float64{1, 1, 0, 1, 1}), x.Memory,
		int32(cols), int64(h.Stride), int64(1), int64(x.Stride))
	d.CheckMatrix("x", x, wantX, 0)
	var p pairsByRow
	p.sort(rows)
	to := d.Matrix(6, cols, dhidden)
	d.Launch("logprob_scatter", emulator.Launch{Grid: [3]int{3}, Block: [3]int{32}}, d.Float32(dx), optest.Copy(d, p.order), optest.Copy(d, p.starts), at,
		to.Memory, int32(cols), int64(cols), int64(to.Stride))
	d.CheckMatrix("dhidden", to, sum, 1.0/256)
}
