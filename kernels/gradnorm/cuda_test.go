package gradnorm

import (
	"math"
	"math/rand/v2"
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/gradnorm/op.cu",
	Registers: map[string]int{"gradnorm_squares": 40, "gradnorm_norm": 32},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		r := rand.New(rand.NewPCG(1, 2))
		large := make([]float64, 40)
		large[3], large[39] = 3e30, -4e30 // squares that no float32 holds still have a norm
		for _, g := range [][]float64{optest.Normal(r, 1, 1, 0), optest.Normal(r, 15, 1, 0), optest.Normal(r, 2049, 1, 0), optest.Normal(r, 9001, 1e-3, 0), large} {
			proveKernels(d, g)
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, g []float64) {
	d.Helper()
	for _, blocks := range []int{1, 3} {
		partial, norm := optest.Copy(d, make([]float64, blocks)), optest.Copy(d, []float64{math.NaN()})
		d.Launch("gradnorm_squares", emulator.Launch{Grid: [3]int{blocks}, Block: [3]int{256}}, d.Float32(g), int64(len(g)), partial)
		d.Launch("gradnorm_norm", emulator.Launch{Block: [3]int{64}}, partial, int32(blocks), norm)
		var exact []float64
		for _, v := range g {
			exact = append(exact, float64(float32(v)))
		}
		d.CheckFloat64("norm", norm, []float64{math.Sqrt(specSquares(exact))}, 1e-14) // sums in float64
	}
}
