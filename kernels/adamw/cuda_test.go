package adamw

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"caper/cuda/emulator"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/adamw/op.cu",
	Registers: map[string]int{"adamw_step": 64, "adamw_step_bf16": 72, "adamw_to_float32": 40},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		for _, n := range []int{1, 8, 77, 2051} {
			proveStep(d, n)
			proveRandomRounding(d, n)
			proveMaster(d, n)
		}
	})
}

func launch(n int) emulator.Launch {
	return emulator.Launch{Grid: [3]int{(n + 2047) / 2048}, Block: [3]int{256}}
}

var sample = update{beta1: 0.9, beta2: 0.95, eps: 1e-8, scale: 0.5, step: 1e-2 / 0.271, correct: 1 / math.Sqrt(0.142), decay: 1e-3}

// args are the kernels' numbers, as cpu.go passes them.
func (u update) args() []any {
	return []any{float32(1 - u.beta1), float32(1 - u.beta2), float32(u.eps), float32(u.scale), float32(u.step), float32(u.correct), float32(u.decay)}
}

func proveStep(d *optest.EmulatedGPU, n int) {
	d.Helper()
	r := rand.New(rand.NewPCG(uint64(n), 1))
	p, g, m := optest.Normal(r, n, 1, 0), optest.Normal(r, n, 1, 0), optest.Normal(r, n, 1, 0)
	v := optest.Normal(r, n, 0.1, 2)
	master, ms, vs, working := d.Float32(p), d.Float32(m), d.Float32(v), d.Matrix(1, n, nil)
	d.Launch("adamw_step", launch(n), append([]any{working.Memory, master, d.Float32(g), ms, vs, int64(n)}, sample.args()...)...)
	alone := d.Float32(p) // a weight without a copy in bf16
	d.Launch("adamw_step", launch(n), append([]any{nil, alone, d.Float32(g), d.Float32(m), d.Float32(v), int64(n)}, sample.args()...)...)
	specUpdate(p, g, m, v, sample)
	const tolerance = 1e-6 // a few roundings of float32
	d.CheckFloat32("m", ms, m, tolerance)
	d.CheckFloat32("v", vs, v, tolerance)
	d.CheckFloat32("master", master, p, tolerance)
	d.CheckFloat32("weight without a copy", alone, p, tolerance)
	d.CheckMatrix("p", working, float32s(master), 1.0/256) // the nearest bf16
}

// Halves and quarters give means that float32 holds, so that the bits they are rounded by are
// known: those of the generator.
func proveRandomRounding(d *optest.EmulatedGPU, n int) {
	d.Helper()
	u := update{beta1: 0.5, beta2: 0.75, eps: 1e-8, scale: 1, step: 1e-2, correct: 1}
	r := rand.New(rand.NewPCG(uint64(n), 2))
	p, g, m, v := optest.Normal(r, n, 1, 0), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		g[i], m[i], v[i] = float64(r.IntN(4001)-2000)/1024, float64(r.IntN(401)-200)/128, float64(r.IntN(200))/64
	}
	ms, vs, master, working := d.Matrix(1, n, m), d.Matrix(1, n, v), d.Float32(p), d.Matrix(1, n, nil)
	for i := range n { // as bf16 holds them
		m[i], v[i] = optest.RoundBF16(m[i]), optest.RoundBF16(v[i])
	}
	const key = 0x0123456789abcdef
	d.Launch("adamw_step_bf16", launch(n), slices.Concat([]any{working.Memory, master, d.Float32(g), ms.Memory, vs.Memory, int64(n)}, u.args(), []any{uint64(key)})...)
	specUpdate(p, g, m, v, u)
	for i := range n {
		m[i], v[i] = roundedRandomly(m[i], key, i, 0), roundedRandomly(v[i], key, i, 1)
	}
	d.CheckMatrix("m", ms, m, 0)
	d.CheckMatrix("v", vs, v, 0)
	d.CheckFloat32("master", master, p, 1e-6)
	d.CheckMatrix("p", working, float32s(master), 1.0/256)
}

func roundedRandomly(x float64, key uint64, i int, purpose uint32) float64 {
	random := philox(key, [4]uint32{uint32(i / 8), 0, purpose, 0})
	sixteen := random[i%8/2] >> (i % 2 * 16) & 0xffff
	return float64(math.Float32frombits((math.Float32bits(float32(x)) + sixteen) &^ 0xffff))
}

// philox is Philox4x32-10, from its paper.
func philox(key uint64, x [4]uint32) [4]uint32 {
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		high0, low0 := bits.Mul32(0xD2511F53, x[0])
		high1, low1 := bits.Mul32(0xCD9E8D57, x[2])
		x = [4]uint32{high1 ^ x[1] ^ k0, low1, high0 ^ x[3] ^ k1, low0}
		k0, k1 = k0+0x9E3779B9, k1+0xBB67AE85
	}
	return x
}

// Known answers of Random123's kat_vectors.
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		key     uint64
		x, want [4]uint32
	}{
		{0, [4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{^uint64(0), [4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0a4093822, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.key, c.x); got != c.want {
			t.Errorf("philox(%x, %x) is %x, want %x", c.key, c.x, got, c.want)
		}
	}
}

// Rounding at random keeps small changes on average: to the nearest, a mean in bf16 that moves
// by a thousandth of its distance would never arrive.
func TestRandomRoundingIsUnbiased(t *testing.T) {
	const x, n = 1.0 + 1.0/1024, 20000 // an eighth of the way from 1 to the next bf16
	sum := 0.0
	for i := range n {
		sum += roundedRandomly(x, 7, i, 0)
	}
	// A share of 1/8 of n, within five deviations.
	if up := (sum/n - 1) * 128; math.Abs(up-0.125) > 5*math.Sqrt(0.125*0.875/n) {
		t.Errorf("rounded up %g of the time, want 0.125", up)
	}
}

func proveMaster(d *optest.EmulatedGPU, n int) {
	d.Helper()
	r := rand.New(rand.NewPCG(uint64(n), 3))
	x, master := optest.Normal(r, n, 1, 0), d.NewFloat32(n)
	d.Launch("adamw_to_float32", launch(n), d.Matrix(1, n, x).Memory, master, int64(n))
	d.CheckFloat32("master", master, x, 0)
}

func float32s(m *emulator.Memory) []float64 {
	var x []float64
	for _, v := range emulator.Of[float32](m) {
		x = append(x, float64(v))
	}
	return x
}
