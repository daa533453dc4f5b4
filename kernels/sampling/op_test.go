package sampling

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"caper/engine"
)

// logits returns rows of normal numbers, times spread, some of them equal.
func logits(dev engine.Device, r *rand.Rand, rows, cols int, spread float64) *engine.Tensor {
	x := engine.NewFrozen(dev, "logits", rows, cols).Tensor
	for i := range rows {
		for j := range cols {
			v := spread * r.NormFloat64()
			if r.IntN(3) == 0 {
				v = math.Round(v) // ties
			}
			x.Set(i, j, float64(float32(v)))
		}
	}
	return x
}

func drawRule(t *rapid.T) Rule {
	return Rule{
		Temperature: rapid.SampledFrom([]float64{0, 1e-40, 0.01, 0.3, 1, 2, 100}).Draw(t, "temperature"),
		TopK:        rapid.SampledFrom([]int{0, 1, 2, 5, 40, 1 << 20}).Draw(t, "top-k"),
		TopP:        rapid.SampledFrom([]float64{0, 1e-9, 0.3, 0.9, 0.999, 1}).Draw(t, "top-p"),
		MinP:        rapid.SampledFrom([]float64{0, 0.05, 0.5, 1}).Draw(t, "min-p"),
	}
}

// The C code draws what the specification draws. Where its uniform number is within
// rounding of the border between two tokens, or a filter's share within rounding of
// what it asks for, the other side is right too: such cases are counted and must be
// few.
func TestAgainstSpecification(t *testing.T) {
	cpu := engine.CPU(2)
	draws, near := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		cols := rapid.SampledFrom([]int{1, 5, 16, 100, 5000}).Draw(t, "cols")
		words := rapid.SampledFrom([]int{cols, (cols + 1) / 2, 1}).Draw(t, "words")
		spread := rapid.SampledFrom([]float64{0, 0.1, 1, 10}).Draw(t, "spread")
		rule := drawRule(t)
		want, got := requests(seed, rule), requests(seed, rule)
		run := func(dev engine.Device, draws []Draw) {
			tape := engine.NewTape(dev)
			tape.Inference, tape.Poison = true, true
			Run(tape, logits(dev, rand.New(rand.NewPCG(seed, 1)), 3, cols, spread), words, draws)
		}
		run(engine.Reference(), want)
		run(cpu, got)
		for i := range want {
			draws++
			if got[i].Token != want[i].Token {
				near++
				continue
			}
			if d := math.Abs(float64(got[i].LogProb - want[i].LogProb)); !(d <= 1e-5) {
				t.Fatalf("draw %d: log-prob %g, want %g", i, got[i].LogProb, want[i].LogProb)
			}
			// Relative to the distance of the logits over the temperature, which float32
			// holds to 1e-7; a tie more or less at a border of TopP changes it.
			if d := math.Abs(float64(got[i].Drawn - want[i].Drawn)); !(d <= 1e-5*(1-float64(want[i].Drawn))) {
				near++
			}
		}
	})
	if 200*near > draws {
		t.Errorf("%d of %d draws differ", near, draws)
	}
	t.Logf("%d of %d draws differ by rounding", near, draws)
}

func requests(seed uint64, rule Rule) []Draw {
	r := rand.New(rand.NewPCG(seed, 2))
	draws := make([]Draw, 8)
	for i := range draws {
		draws[i] = Draw{Row: int32(i % 3), Uniform: r.Float64(), Temperature: rule.Temperature, TopK: int32(rule.TopK), TopP: rule.TopP, MinP: rule.MinP}
	}
	return draws
}

// Tokens come as often as their probabilities say, and Drawn is that probability.
func TestFrequencies(t *testing.T) {
	dev := engine.CPU(2)
	tape := engine.NewTape(dev)
	tape.Inference = true
	x := engine.NewFrozen(dev, "logits", 1, 6).Tensor
	for j, v := range []float64{0, 1, 2, 1, -3, 5} {
		x.Set(0, j, v)
	}
	const n = 20000
	// At temperature 2, without the last word, of 0, 1, 2, 1, -3 the three best.
	w := []float64{0, math.Exp(0.5), math.E, math.Exp(0.5), 0}
	total := w[1] + w[2] + w[3]
	draws := make([]Draw, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range draws {
		draws[i] = Draw{Temperature: 2, TopK: 2, TopP: 1, Uniform: r.Float64()}
	}
	Run(tape, x, 5, draws)
	counts := make([]float64, 5)
	lse := math.Log(math.Exp(0) + 2*math.Exp(1) + math.Exp(2) + math.Exp(-3) + math.Exp(5))
	for _, d := range draws {
		counts[d.Token]++
		if math.Abs(float64(d.Drawn)-math.Log(w[d.Token]/total)) > 1e-6 || math.Abs(float64(d.LogProb)-(x.At(0, int(d.Token))-lse)) > 1e-6 {
			t.Fatalf("token %d: log-probs %g, %g", d.Token, d.LogProb, d.Drawn)
		}
	}
	for j, c := range counts {
		p := w[j] / total
		if deviation := math.Sqrt(n * p * (1 - p)); math.Abs(c-n*p) > 5*deviation {
			t.Errorf("token %d came %g times, expected %g within %g", j, c, n*p, deviation)
		}
	}
}

// Numbers that are no logits give no token, and never a read beyond the row.
func TestNotFinite(t *testing.T) {
	for _, dev := range []engine.Device{engine.Reference(), engine.CPU(1)} {
		for _, bad := range []float64{math.NaN(), math.Inf(1)} {
			for _, at := range []int{0, 4, 18} {
				tape := engine.NewTape(dev)
				tape.Inference = true
				x := engine.NewFrozen(dev, "logits", 1, 19).Tensor
				x.Set(0, at, bad)
				for _, temperature := range []float64{0, 1} {
					d := []Draw{{Temperature: temperature, TopP: 0.5, TopK: 3}}
					Run(tape, x, 10, d)
					if d[0].Token != -1 {
						t.Errorf("%s: %g at %d: token %d", dev.Name(), bad, at, d[0].Token)
					}
				}
			}
		}
	}
}

// Greedy: the lowest id among equal logits, padding words left out.
func TestGreedyTies(t *testing.T) {
	for _, dev := range []engine.Device{engine.Reference(), engine.CPU(1)} {
		tape := engine.NewTape(dev)
		tape.Inference = true
		x := engine.NewFrozen(dev, "logits", 1, 40).Tensor
		for _, j := range []int{7, 20, 33} {
			x.Set(0, j, 2)
		}
		x.Set(0, 39, 9)
		d := []Draw{{}}
		Run(tape, x, 39, d)
		if d[0].Token != 7 || d[0].Drawn != 0 {
			t.Errorf("%s: %+v, want token 7", dev.Name(), d[0])
		}
	}
}

func TestRuleCheck(t *testing.T) {
	for _, r := range []Rule{{Temperature: -1}, {Temperature: math.NaN()}, {TopK: -1}, {TopP: 1.5}, {TopP: math.NaN()}, {MinP: -0.1}, {MinP: 2}} {
		if r.Check() == nil {
			t.Errorf("%+v passes", r)
		}
	}
	if err := (Rule{Temperature: 0.7, TopK: 40, TopP: 0.9, MinP: 0.05}).Check(); err != nil {
		t.Error(err)
	}
}

func Benchmark(b *testing.B) {
	dev := engine.CPU(2)
	x := logits(dev, rand.New(rand.NewPCG(1, 1)), 32, 151936, 3)
	for name, rule := range map[string]Rule{"greedy": {}, "temperature": {Temperature: 1}, "filters": {Temperature: 1, TopK: 50, TopP: 0.9}} {
		b.Run(name, func(b *testing.B) {
			tape := engine.NewTape(dev)
			tape.Inference = true
			draws := make([]Draw, 32)
			for i := range draws {
				draws[i] = Draw{Row: int32(i), Temperature: rule.Temperature, TopK: int32(rule.TopK), TopP: rule.TopP, Uniform: float64(i) / 32}
			}
			b.ReportAllocs()
			for b.Loop() {
				tape.Reset()
				Run(tape, x, x.Cols, draws)
			}
		})
	}
}
