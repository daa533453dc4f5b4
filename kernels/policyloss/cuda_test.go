package policyloss

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/policyloss/op.cu",
	Registers: map[string]int{"policyloss_forward": 40, "policyloss_backward": 40},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	var many []Token
	for i := range int32(300) {
		many = append(many, Token{Old: float32(i%5)/4 - 1, Reference: float32(i%3)/2 - 1, Advantage: float32(i%7) - 3, Weight: float32(i%4) / 8})
	}
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, o := range options {
			proveKernels(d, tokens, o)
			proveKernels(d, many, o)
		}
	})
}

func proveKernels(d *optest.EmulatedGPU, tokens []Token, o Options) {
	d.Helper()
	c := operator(tokens, o)
	e := c.Example()
	logProbs, ks := d.Float32(e.In[0]), optest.Copy(d, tokens)
	loss, slopes := d.NewFloat32(1), d.WeightGradient(len(tokens))
	args := []any{float32(o.Low), float32(o.High), float32(o.DualClip), float32(o.KL)}
	d.Launch("policyloss_forward", emulator.Launch{Block: [3]int{64}}, append([]any{logProbs, int64(1), ks, int32(len(tokens)), loss}, args...)...)
	d.CheckFloat32(c.Name+": loss", loss, e.Out[0], 4e-6) // sums in float32
	d.Launch("policyloss_backward", emulator.Launch{Grid: [3]int{(len(tokens) + 31) / 32}, Block: [3]int{32}},
		append([]any{logProbs, int64(1), ks, int32(len(tokens)), d.Float32(e.Seeds[0]), slopes, int64(1)}, args...)...)
	d.CheckWeightGradient(c.Name+": slopes", slopes, e.Gradients[0], 4e-6)
}
