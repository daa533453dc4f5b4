package sampling

import (
	"math"
	"math/rand/v2"
	"testing"

	"caper/cuda/emulator"
	"caper/engine"
	"caper/kernels/optest"
)

var kernels = optest.Kernels{
	File:      "kernels/sampling/op.cu",
	Registers: map[string]int{"sampling_float32": 64, "sampling_bf16": 64},
}

func TestKernelsCompile(t *testing.T) { kernels.Compile(t) }

// The kernels draw what the specification draws, but for draws within rounding of a border as
// in TestAgainstSpecification.
func TestKernels(t *testing.T) {
	kernels.Run(t, func(d *optest.EmulatedGPU) {
		draws, near, seed := 0, 0, uint64(0)
		cols := []int{1, 5, 100, 1500}
		if d.Races {
			cols = []int{5, 300}
		}
		for _, cols := range cols {
			for _, rule := range []Rule{
				{}, {Temperature: 1}, {Temperature: 1e-40}, {Temperature: 100, TopP: 0.9}, {Temperature: 0.7, TopK: 5},
				{Temperature: 1, TopP: 0.3}, {Temperature: 1, TopP: 1e-9}, {Temperature: 2, TopK: 40, TopP: 0.999, MinP: 0.05}, {Temperature: 1, MinP: 1},
			} {
				for _, bf16 := range []bool{false, true} {
					seed++
					n, differ := proveKernels(d, seed, cols, rule, bf16)
					draws, near = draws+n, near+differ
				}
			}
		}
		if 200*near > draws {
			d.Errorf("%d of %d draws differ", near, draws)
		}
		proveOddRows(d)
	})
}

func proveKernels(d *optest.EmulatedGPU, seed uint64, cols int, rule Rule, bf16 bool) (draws, near int) {
	d.Helper()
	x := logits(engine.Reference(), rand.New(rand.NewPCG(seed, 1)), 3, cols, []float64{0, 0.1, 1, 10}[seed%4])
	words := []int{cols, (cols + 1) / 2}[seed/4%2]
	want, got := requests(seed, rule), requests(seed, rule)
	if bf16 {
		for i := range x.F64 {
			x.F64[i] = optest.RoundBF16(x.F64[i])
		}
	}
	for i := range want {
		specDraw(&want[i], x.F64[int(want[i].Row)*cols:][:cols], words)
	}
	answer(d, x.F64, cols, words, got, bf16)
	for i := range want {
		draws++
		if got[i].Token != want[i].Token || !(math.Abs(float64(got[i].Drawn-want[i].Drawn)) <= 1e-5*(1-float64(want[i].Drawn))) {
			near++
		} else if diff := math.Abs(float64(got[i].LogProb - want[i].LogProb)); !(diff <= 1e-5) {
			d.Errorf("seed %d, draw %d: log-prob %g, want %g", seed, i, got[i].LogProb, want[i].LogProb)
		}
	}
	return draws, near
}

// answer runs the kernels on draws.
func answer(d *optest.EmulatedGPU, x []float64, cols, words int, draws []Draw, bf16 bool) {
	d.Helper()
	memory, answered := optest.Copy(d, draws), optest.Copy(d, draws)
	launch := emulator.Launch{Grid: [3]int{len(draws)}, Block: [3]int{128}, Shared: sharedBytes}
	if bf16 {
		m := d.Matrix(len(x)/cols, cols, x)
		d.Launch("sampling_bf16", launch, m.Memory, int64(m.Stride), int32(cols), int32(words), memory, answered)
	} else {
		d.Launch("sampling_float32", launch, d.Float32(x), int64(cols), int32(cols), int32(words), memory, answered)
	}
	copy(draws, emulator.Of[Draw](answered))
	var answers []float64
	for _, a := range draws {
		answers = append(answers, float64(a.Token), float64(a.LogProb), float64(a.Drawn))
	}
	d.CheckFloat64("answers", optest.Copy(d, answers), answers, 0) // the same in every order of threads
}

// What is no logit gives no token; greedy takes the lowest id among equal logits, and never
// padding; a word that is masked is never drawn.
func proveOddRows(d *optest.EmulatedGPU) {
	d.Helper()
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		for _, at := range []int{0, 4, 18} {
			x := make([]float64, 19)
			x[at] = bad
			draws := []Draw{{}, {Temperature: 1, TopP: 0.5, TopK: 3}}
			answer(d, x, 19, 10, draws, false)
			if draws[0].Token != -1 || draws[1].Token != -1 {
				d.Errorf("%g at %d: tokens %d and %d", bad, at, draws[0].Token, draws[1].Token)
			}
		}
	}
	x := make([]float64, 40)
	x[7], x[20], x[33], x[39] = 2, 2, 2, 9
	for j := range 7 {
		x[j] = math.Inf(-1)
	}
	draws := []Draw{{}, {Temperature: 1, Uniform: 0}, {Temperature: 1, Uniform: math.Nextafter(1, 0)}}
	answer(d, x, 40, 39, draws, true)
	for i, want := range []int32{7, 7, 38} {
		if draws[i].Token != want {
			d.Errorf("draw %d: token %d, want %d", i, draws[i].Token, want)
		}
	}
}

// The same through the engine, from logits in bf16 and in float32.
func TestRunOnCUDA(t *testing.T) {
	dev := optest.CUDA(t)
	tape := engine.NewTape(dev)
	defer tape.Close()
	tape.Inference, tape.Poison = true, true
	for seed, rule := range []Rule{{}, {Temperature: 1, TopK: 40, TopP: 0.9, MinP: 0.01}} {
		x := logits(engine.Reference(), rand.New(rand.NewPCG(uint64(seed), 1)), 3, 200, 3)
		want := requests(uint64(seed), rule)
		values := make([]float32, 3*200)
		for i, v := range x.F64 {
			x.F64[i] = optest.RoundBF16(v)
			values[i] = float32(x.F64[i])
		}
		for i := range want {
			specDraw(&want[i], x.F64[int(want[i].Row)*200:][:200], 190)
		}
		for _, on := range []*engine.Tensor{tape.New(3, 200), tape.NewFloat32(3, 200)} {
			on.Write(values)
			got := requests(uint64(seed), rule)
			Run(tape, on, 190, got)
			for i := range want {
				if got[i].Token != want[i].Token || math.Abs(float64(got[i].LogProb-want[i].LogProb)) > 1e-5 || got[i].Uniform != want[i].Uniform {
					t.Errorf("%s: draw %d is %+v, want %+v", on, i, got[i], want[i])
				}
			}
		}
		tape.Reset()
	}
}
