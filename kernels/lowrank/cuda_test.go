package lowrank

import (
	"math/rand/v2"
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{File: "kernels/lowrank/op.cu", Registers: map[string]int{"lowrank_scale": 32}}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, shape := range [][2]int{{1, 1}, {5, 16}, {3, 300}} {
			rows, cols := shape[0], shape[1]
			x := optest.Normal(rand.New(rand.NewPCG(1, 2)), rows*cols, 1, 0)
			m := d.Matrix(rows, cols, x)
			d.Launch("lowrank_scale", emulator.Launch{Grid: [3]int{rows, (cols + 255) / 256}, Block: [3]int{32}}, m.Memory, int32(cols), int64(m.Stride), float32(0.5))
			for i := range x {
				x[i] *= 0.5
			}
			d.CheckMatrix("scaled", m, x, 0)
		}
	})
}
