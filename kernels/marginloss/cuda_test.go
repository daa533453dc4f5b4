package marginloss

import (
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/marginloss/op.cu",
	Registers: map[string]int{"marginloss_forward": 40, "marginloss_backward": 40},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	var many []Pair
	for i := range int32(300) {
		many = append(many, Pair{Chosen: i * 7 % 41, Rejected: i * 11 % 43, Margin: float32(i%5) / 4, Weight: float32(i%3) / 2})
	}
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, o := range []Options{{Center: 0.01}, {Offset: 1}, {Offset: 0.7, Center: 0.3}, {Center: 0.1, WeightSum: 7, PairCount: 9}} {
			proveKernels(d, pairs, 7, o)
			proveKernels(d, many, 43, o)
		}
		proveKernels(d, nil, 2, Options{Center: 1})
	})
}

func proveKernels(d *optest.EmulatedGPU, pairs []Pair, rows int, o Options) {
	d.Helper()
	c := operator(pairs, rows, o)
	e := c.Example()
	scores, ps := d.Float32(e.In[0]), optest.Copy(d, pairs)
	loss, dscores := d.NewFloat32(1), d.WeightGradient(rows)
	weights, count := o.denominators(pairs)
	args := []any{float32(o.Offset), float32(o.Center / max(count, 1)), float32(weights)}
	d.Launch("marginloss_forward", emulator.Launch{Block: [3]int{64}}, append([]any{scores, int64(1), ps, int32(len(pairs)), loss}, args...)...)
	d.CheckFloat32(c.Name+": loss", loss, e.Out[0], 2e-6) // sums in float32
	d.Launch("marginloss_backward", emulator.Launch{Grid: [3]int{(rows + 31) / 32}, Block: [3]int{32}},
		append([]any{scores, int64(1), ps, int32(len(pairs)), d.Float32(e.Seeds[0]), dscores, int64(1), int32(rows)}, args...)...)
	d.CheckWeightGradient(c.Name+": dscores", dscores, e.Gradients[0], 2e-6)
}
