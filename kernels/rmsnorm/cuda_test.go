package rmsnorm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"caper/cuda/emulator"
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
	c := operator(rows, cols, offset == 1)
	x, res, added := optest.Normal(r, rows*cols, 2, 0), optest.Matrix{}, optest.Matrix{}
	sum := slices.Clone(x)
	if residual {
		other := optest.Normal(r, rows*cols, 2, 0)
		res = d.Matrix(rows, cols, other)
		for i := range sum {
			sum[i] = optest.RoundBF16(x[i] + other[i])
		}
	}
	c.Inputs[0].Values = sum
	e := c.Example()
	wantDX := e.Gradients[0]

	yTolerance, dwTolerance := rounding, 1e-5
	if offset == 0 {
		yTolerance, dwTolerance = 2*rounding, 2*rounding
	}
	const eps = float32(1e-6)
	weights, y, sums := d.Matrix(1, cols, e.In[1]), d.Matrix(rows, cols, nil), d.Matrix(rows, cols, nil)
	n, stride := int32(cols), int64(y.Stride)
	threads := min((cols+255)/256*32, 128) // so that long rows need several passes
	launch := emulator.Launch{Grid: [3]int{rows}, Block: [3]int{threads}}
	d.Launch("rmsnorm_forward", launch, d.Matrix(rows, cols, x).Memory, res.Memory, weights.Memory, sums.Memory, y.Memory,
		n, stride, stride, stride, stride, eps, offset)
	d.CheckMatrix(name+"y", y, e.Out[0], yTolerance)
	if residual {
		d.CheckMatrix(name+"sum", sums, sum, 0)
		other := optest.Normal(r, rows*cols, 1, 0)
		added = d.Matrix(rows, cols, other)
		for i := range wantDX {
			wantDX[i] += other[i]
		}
	}

	blocks := min(rows, 4)
	partial, dw, dx := d.NewFloat32(blocks*cols), d.Float32(make([]float64, cols)), d.Matrix(rows, cols, nil)
	launch = emulator.Launch{Grid: [3]int{blocks}, Block: [3]int{threads}, Shared: 4 * cols}
	d.Launch("rmsnorm_backward", launch, d.Matrix(rows, cols, sum).Memory, weights.Memory, d.Matrix(rows, cols, e.Seeds[0]).Memory, added.Memory, dx.Memory, partial,
		int32(rows), n, stride, stride, stride, stride, eps, offset)
	d.Launch("rmsnorm_weight_gradient", emulator.Launch{Grid: [3]int{(cols + 255) / 256}, Block: [3]int{256}}, partial, dw, int32(blocks), n)
	d.CheckMatrix(name+"dx", dx, wantDX, rounding)
	d.CheckFloat32(name+"dw", dw, e.Gradients[1], dwTolerance)
}
