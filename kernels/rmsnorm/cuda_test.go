package rmsnorm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"caper/cuda/emulator"
	"caper/engine"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/rmsnorm/op.cu",
	Registers: map[string]int{"rmsnorm_forward": 64, "rmsnorm_backward": 64, "rmsnorm_weight_gradient": 40},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

// Shapes as in the model, ragged ones, and rows longer than a block's eight columns a thread.
func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		shapes := [][2]int{{1, 3}, {2, 15}, {33, 16}, {31, 33}, {5, 1024}, {3, 2568}, {150, 100}}
		if d.Races {
			shapes = [][2]int{{2, 15}, {5, 64}, {3, 600}}
		}
		for _, shape := range shapes {
			for _, offset := range []float32{0, 1} {
				for _, residual := range []bool{false, true} {
					proveKernels(d, shape[0], shape[1], offset, residual)
				}
			}
		}
	})
}

// Rounding to bf16 loses up to 2^-8 of an element. Where the normalised row is rounded before
// the gain (offset 0), y loses as much twice, and dw, a sum in float32, once.
const rounding = 1.0 / 256

func proveKernels(d *optest.EmulatedGPU, rows, cols int, offset float32, residual bool) {
	d.Helper()
	name := fmt.Sprintf("%dx%d offset %g residual %t: ", rows, cols, offset, residual)
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	x, dy, w := draw(r, rows*cols, 2, 0), draw(r, rows*cols, 1, 0), draw(r, cols, 0.2, 1-float64(offset))
	sum, res, added := x, optest.Matrix{}, optest.Matrix{}
	if residual {
		other := draw(r, rows*cols, 2, 0)
		res, sum = d.Matrix(rows, cols, other), make([]float64, len(x))
		for i := range x {
			sum[i] = optest.RoundBF16(x[i] + other[i])
		}
	}
	wantY, wantDX, wantDW := specification(rows, cols, sum, w, dy, float64(offset))

	yTolerance, dwTolerance := rounding, 1e-5
	if offset == 0 {
		yTolerance, dwTolerance = 2*rounding, 2*rounding
	}
	const eps = float32(1e-6)
	weights, y, sums := d.Matrix(1, cols, w), d.Matrix(rows, cols, nil), d.Matrix(rows, cols, nil)
	n, stride := int32(cols), int64(y.Stride)
	threads := min((cols+255)/256*32, 128) // so that long rows need several passes
	launch := emulator.Launch{Grid: [3]int{rows}, Block: [3]int{threads}}
	d.Launch("rmsnorm_forward", launch, d.Matrix(rows, cols, x).Memory, res.Memory, weights.Memory, sums.Memory, y.Memory,
		n, stride, stride, stride, stride, eps, offset)
	d.CheckMatrix(name+"y", y, wantY, yTolerance)
	if residual {
		d.CheckMatrix(name+"sum", sums, sum, 0)
		other := draw(r, rows*cols, 1, 0)
		added = d.Matrix(rows, cols, other)
		for i := range wantDX {
			wantDX[i] += other[i]
		}
	}

	blocks := min(rows, 4)
	partial, dw, dx := d.NewFloat32(blocks*cols), d.Float32(make([]float64, cols)), d.Matrix(rows, cols, nil)
	launch = emulator.Launch{Grid: [3]int{blocks}, Block: [3]int{threads}, Shared: 4 * cols}
	d.Launch("rmsnorm_backward", launch, d.Matrix(rows, cols, sum).Memory, weights.Memory, d.Matrix(rows, cols, dy).Memory, added.Memory, dx.Memory, partial,
		int32(rows), n, stride, stride, stride, stride, eps, offset)
	d.Launch("rmsnorm_weight_gradient", emulator.Launch{Grid: [3]int{(cols + 255) / 256}, Block: [3]int{256}}, partial, dw, int32(blocks), n)
	d.CheckMatrix(name+"dx", dx, wantDX, rounding)
	d.CheckFloat32(name+"dw", dw, wantDW, dwTolerance)
}

// draw returns normally distributed numbers that bf16 holds.
func draw(r *rand.Rand, n int, deviation, mean float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = optest.RoundBF16(mean + deviation*r.NormFloat64())
	}
	return x
}

// specification runs spec.go: y, and the gradients of x and w.
func specification(rows, cols int, x, w, dy []float64, offset float64) (y, dx, dw []float64) {
	tape := engine.NewTape(engine.Reference())
	xs, ws := tensor(tape, rows, cols, x), tensor(tape, 1, cols, w)
	ys := Forward(tape, xs, ws, 1e-6, offset == 1)
	seed := tape.AddTo(ys)
	for i, v := range dy {
		seed.Set(i/cols, i%cols, v)
	}
	tape.Backward()
	return elements(ys), elements(tape.Gradient(xs)), elements(tape.Gradient(ws))
}

func tensor(t *engine.Tape, rows, cols int, values []float64) *engine.Tensor {
	x := t.New(rows, cols)
	for i, v := range values {
		x.Set(i/cols, i%cols, v)
	}
	return x
}

func elements(x *engine.Tensor) []float64 {
	var values []float64
	for r := range x.Rows {
		for c := range x.Cols {
			values = append(values, x.At(r, c))
		}
	}
	return values
}
