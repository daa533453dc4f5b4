package grpo

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"caper/engine"
	"caper/kernels/policyloss"
	"caper/model"
	"caper/model/lora"
	"caper/model/qwen35"
)

// tiny is a model of a few hundred weights with both kinds of layers.
func tiny(t testing.TB, dev engine.Device, seed uint64) *model.Model {
	t.Helper()
	c := qwen35.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers = 11, 8, 8, 2
	c.Heads, c.KVHeads, c.HeadDim = 2, 1, 8
	c.KeyHeads, c.ValueHeads, c.KeyDim, c.ValueDim = 1, 1, 4, 4
	c.InitRange, c.Tied = 0.3, true
	c.LayerTypes = qwen35.LayerTypes(2, 2)
	m, err := model.New(model.Config{Text: c}, dev, seed)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newLearner(m *model.Model, o policyloss.Options) *learner {
	return &learner{model: m, params: m.Trainable(), tape: engine.NewTape(m.Device()), loss: o, tokens: 1 << 20}
}

// fourSamples are three answers to one prompt, two of which begin alike, and one to another.
func fourSamples() []*sample {
	p := []int32{1, 2, 3, 4}
	return []*sample{
		{prompt: p, tokens: []int32{5, 6, 7}, advantages: []float32{1, 1, -0.5}},
		{prompt: p, tokens: []int32{5, 6, 8, 0}, advantages: []float32{-1, 0.25, 0.5, 2}},
		{prompt: p, tokens: []int32{9}, advantages: []float32{-1}},
		{prompt: []int32{3, 2}, tokens: []int32{9, 0}, advantages: []float32{0.7, -0.7}},
	}
}

func weightsOf(t *testing.T, samples []*sample) []float32 {
	t.Helper()
	var lengths []int
	for _, s := range samples {
		lengths = append(lengths, len(s.tokens))
	}
	w, err := policyloss.PerSample.Weights(lengths, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The gradient of the whole step is the slope of its loss, by finite differences: old
// log-probs and the reference are constants, some ratios are past a bound, and tokens are
// weighted by how likely they were when they were drawn.
func TestGradientOfTheStep(t *testing.T) {
	m := tiny(t, engine.Reference(), 1)
	l := newLearner(m, policyloss.Options{Low: 0.2, High: 0.28, KL: 0.1, DualClip: 3})
	l.reference, l.importance = newReference(tiny(t, engine.Reference(), 2), false), 2
	samples := fourSamples()
	samples[1].drawn = []float32{-2, -1, -3, -2}
	weights := weightsOf(t, samples)
	l.gradients(samples, weights, true, nil)
	for _, s := range samples { // an old policy that is not the present one
		for i := range s.old {
			s.old[i] += []float32{0.05, -0.4, 0.1, 0.4}[i%4]
		}
	}
	first := l.gradients(samples, weights, false, nil)
	if first.clipped == 0 || first.kl <= 0 {
		t.Fatalf("the case has no clipped token or no divergence: %+v", first)
	}
	var gradients [][]float64
	for _, p := range l.params {
		gradients = append(gradients, slices.Clone(p.Grad.F64))
	}
	loss := func() float64 { return l.gradients(samples, weights, false, nil).loss }
	checked := 0
	for i, p := range l.params {
		for _, k := range []int{0, len(p.F64) / 2, len(p.F64) - 1} {
			const h = 1e-5
			x := p.F64[k]
			p.F64[k] = x + h
			up := loss()
			p.F64[k] = x - h
			down := loss()
			p.F64[k] = x
			want := (up - down) / (2 * h)
			if math.Abs(gradients[i][k]-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("%s[%d]: gradient %.9g, slope %.9g", p.Name, k, gradients[i][k], want)
			}
			checked++
		}
	}
	if checked < 30 {
		t.Errorf("%d weights checked", checked)
	}
}

// On policy, the gradient is that of the mean of -A log p, whatever the clip.
func TestOnPolicyStep(t *testing.T) {
	m := tiny(t, engine.Reference(), 1)
	l := newLearner(m, policyloss.Options{Low: 0.2, High: 0.2})
	samples := fourSamples()
	weights := weightsOf(t, samples)
	first := l.gradients(samples, weights, true, nil)
	want, entropy, n := 0.0, 0.0, 0.0
	for i, s := range samples {
		for t, a := range s.advantages {
			want -= float64(weights[i] * a)
			entropy, n = entropy-float64(s.old[t]), n+1
		}
	}
	if math.Abs(first.loss-want) > 1e-6 || first.clipped != 0 || math.Abs(first.entropy-entropy/n) > 1e-6 {
		t.Errorf("loss %g, want %g; %+v", first.loss, want, first)
	}
}

// The cut into micro-batches changes rounding alone, the number of threads nothing.
func TestMicroBatchesAndThreads(t *testing.T) {
	run := func(dev engine.Device, tokens int) (lesson, []float32) {
		l := newLearner(tiny(t, dev, 1), policyloss.Options{Low: 0.2, High: 0.2, KL: 0.01})
		l.reference, l.tokens = newReference(tiny(t, dev, 2), false), tokens
		samples := fourSamples()
		got := l.gradients(samples, weightsOf(t, samples), true, nil)
		var all []float32
		for _, p := range l.params {
			values := make([]float32, p.Rows*p.Cols)
			p.Grad.Read(values)
			all = append(all, values...)
		}
		return got, all
	}
	one, want := run(engine.CPU(1), 1<<20)
	for _, threads := range []int{2, 3} {
		got, grads := run(engine.CPU(threads), 1<<20)
		if got.loss != one.loss || !slices.Equal(grads, want) {
			t.Errorf("%d threads give other bits", threads)
		}
	}
	got, grads := run(engine.CPU(1), 6)
	if got.sharing.Rows <= one.sharing.Rows {
		t.Error("the cut into smaller micro-batches did not happen")
	}
	if math.Abs(got.loss-one.loss) > 1e-5 {
		t.Errorf("loss %g in small micro-batches, %g in one", got.loss, one.loss)
	}
	for i := range grads {
		if math.Abs(float64(grads[i]-want[i])) > 1e-4 {
			t.Fatalf("gradient %d: %g, in one micro-batch %g", i, grads[i], want[i])
		}
	}
}

// Under LoRA the reference is the base: a fresh adapter is no divergence, a moved one is.
func TestReferenceIsTheBase(t *testing.T) {
	m := tiny(t, engine.CPU(1), 1)
	if err := m.AddAdapter(lora.Config{Rank: 2, Alpha: 4, Targets: []string{lora.AllLinear}}, ".", 1); err != nil {
		t.Fatal(err)
	}
	l := newLearner(m, policyloss.Options{Low: 0.2, High: 0.2, KL: 0.01})
	l.reference = newReference(m, true)
	samples := fourSamples()
	if got := l.gradients(samples, weightsOf(t, samples), true, nil); got.kl != 0 {
		t.Errorf("divergence %g from itself", got.kl)
	}
	base := fmt.Sprint(samples[0].reference)
	for _, p := range m.Adapter.Parameters {
		values := make([]float32, p.Rows*p.Cols)
		for i := range values {
			values[i] = 0.1
		}
		p.Write(values)
	}
	if got := l.gradients(samples, weightsOf(t, samples), true, nil); got.kl <= 0 || fmt.Sprint(samples[0].reference) != base {
		t.Errorf("divergence %g of a moved adapter; the base's log-probs %v, %s before", got.kl, samples[0].reference, base)
	}
}
