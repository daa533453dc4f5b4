package grpo

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/policyloss"
	"caper/model/generate"
	"caper/train/curriculum"
	"caper/train/reward"
	"caper/train/run"
)

// Step implements run.Trainer. Where ctx ends before the answers are there, it does nothing.
func (t *trainer) Step(ctx context.Context) ([]run.Figure, error) {
	started := time.Now()
	var m Metrics
	var took phases
	before := t.state
	groups, err := t.gather(ctx, &m, &took)
	if ctx.Err() != nil {
		t.state = before
		t.shuffle()
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("step %d: %w", t.state.Step+1, err)
	}
	answers := t.describe(&m, groups)
	if t.config.Rollout.Ahead && t.state.Step+1 < t.Total {
		t.goAhead(ctx)
	}
	learning := time.Now()
	if err := t.learn(&m, groups); err != nil {
		return nil, err
	}
	if err := t.checkRewards(&m, len(groups)); err != nil {
		return nil, err
	}
	took.Train = time.Since(learning).Seconds()
	t.wait(&took)
	if err := t.collector.source.Update(ctx, t.Model, t.state.Step); err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("weights of step %d: %w", t.state.Step, err)
	}
	m.Step, m.Epoch = t.state.Step, float64(t.state.Epoch)+float64(t.state.Next)/float64(len(t.order))
	t.watch(&m, answers)
	m.time(took, time.Since(started).Seconds())
	if every := t.config.Rollout.LogEvery; every > 0 && t.state.Step%every == 0 {
		if err := t.answers.write(t.state.Step, t.collector.questions, groups); err != nil {
			return nil, err
		}
	}
	if err := t.Write(&m); err != nil {
		return nil, err
	}
	return m.figures(), nil
}

// gather draws questions and their answers until there are as many groups with a signal as
// a step has, but as often as dynamic sampling allows. The step's groups are all that were
// drawn, those without a signal among them.
func (t *trainer) gather(ctx context.Context, m *Metrics, took *phases) (groups []*group, err error) {
	asked := map[int]bool{}
	for missing := t.config.Train.BatchQuestions; missing > 0 && m.Batches < t.config.Rollout.DynamicBatches; m.Batches++ {
		var drawn []*group
		if t.ahead != nil {
			drawn, err = t.useAhead(asked, took)
		} else {
			questions := t.take(missing, asked)
			if len(questions) == 0 {
				break
			}
			drawn, err = t.collector.collect(ctx, t.state.Step+1, questions, took)
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, drawn...)
		for _, g := range drawn {
			if g.advantages != nil {
				missing--
			}
		}
	}
	return groups, nil
}

// take returns the next questions and moves past them, n at most. A question is asked once
// a step: another time, it would be given the same answers.
func (t *trainer) take(n int, asked map[int]bool) (questions []int) {
	for len(questions) < n && len(asked) < len(t.collector.prompts) {
		if t.state.Next == len(t.order) {
			t.state.Epoch, t.state.Next = t.state.Epoch+1, 0
			t.shuffle()
		}
		q := t.order[t.state.Next]
		t.state.Next++
		if !asked[q] {
			asked[q] = true
			questions = append(questions, q)
		}
	}
	return questions
}

// shuffle sets the epoch's order of questions; it depends on seed and epoch alone. With a
// curriculum, an epoch has as many draws as there are questions.
func (t *trainer) shuffle() {
	n := len(t.collector.prompts)
	if t.weights != nil {
		t.order = curriculum.Draw(t.weights, n, t.config.Train.Seed, t.state.Epoch)
		return
	}
	t.order = slices.Grow(t.order[:0], n)
	for i := range n {
		t.order = append(t.order, i)
	}
	engine.Random(t.config.Train.Seed, "shuffle", uint64(t.state.Epoch), 0).
		Shuffle(n, func(i, j int) { t.order[i], t.order[j] = t.order[j], t.order[i] })
}

func (t *trainer) describe(m *Metrics, groups []*group) []*reward.Answer {
	return m.describe(groups, t.collector.crediting.options, func(g *group, i int) (int, bool) {
		s := g.samples[i]
		return len(s.Tokens), s.Finish == generate.Length
	})
}

// learn makes the passes over the answers of a step. A step in which no group has a signal
// changes nothing.
func (t *trainer) learn(m *Metrics, groups []*group) error {
	samples := t.collector.lessons(groups)
	if len(samples) == 0 {
		t.state.Step++
		return nil
	}
	var lengths []int
	for _, s := range samples {
		lengths = append(lengths, len(s.tokens))
	}
	weights, err := policyloss.Normalisation(t.config.Policy.Normalisation).Weights(lengths, t.config.Rollout.MaxTokens)
	if err != nil {
		return err
	}
	rate, shift := t.Rate(), t.entropyBonus()
	var first, last lesson
	var norm float64
	for pass := range t.config.Policy.Passes {
		last = t.learner.gradients(samples, weights, pass == 0, shift)
		if pass == 0 {
			first = last
		}
		if norm, err = t.Norm(); err != nil {
			return err
		}
		if !run.Finite(last.loss, norm) {
			m.Skipped = true
			return t.Skip(t.inputs(samples))
		}
		t.update(rate, norm)
	}
	t.state.Step++
	t.state.BadRun = 0
	t.adjustEntropy(first.entropy)
	m.learned(t, first, last, norm, rate)
	return nil
}

// checkRewards ends a run in which no answer has had a reward for some steps: what is wrong
// will not mend itself.
func (t *trainer) checkRewards(m *Metrics, groups int) error {
	if m.Empty < groups {
		t.state.Unrewarded = 0
		return nil
	}
	t.state.Unrewarded++
	if most := t.config.Train.MaxBadSteps; t.state.Unrewarded >= most {
		return fmt.Errorf("no answer of %d steps in a row has a reward (in the last one, lost: %v, missing: %v): run the same command with --resume once that is mended", most, m.Lost, m.Missing)
	}
	return nil
}

// update moves the weights along their gradients, of the given norm.
func (t *trainer) update(rate, norm float64) {
	c := t.config.Train
	adamw.Step(t.Device, t.Params, t.Moments, adamw.Options{
		LR: rate, Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Epsilon, WeightDecay: c.WeightDecay,
	}, min(1, c.GradClip/(norm+1e-6)))
	t.state.Updates++
}

// entropyBonus is what the entropy's gradient adds to advantages:
//
//	grad H = E[(-log p - H) grad log p]
//
// over tokens drawn from the policy, with the last step's H. nil while there is no bonus.
func (t *trainer) entropyBonus() func(old float64) float64 {
	c, s := t.config.Policy, t.state
	if c.EntropyTarget == 0 || s.Entropy >= c.EntropyTarget || s.EntropyWeight == 0 {
		return nil
	}
	return func(old float64) float64 { return s.EntropyWeight * (-old - s.Entropy) }
}

// adjustEntropy moves the bonus' weight by the entropy of a step.
func (t *trainer) adjustEntropy(entropy float64) {
	c, s := t.config.Policy, &t.state
	s.Entropy = entropy
	if c.EntropyTarget == 0 {
		return
	}
	change := c.EntropyDelta
	if entropy >= c.EntropyTarget {
		change = -change
	}
	s.EntropyWeight = min(max(s.EntropyWeight+change, 0), c.EntropyMax)
}

// watch looks whether the reward model still says what execution says.
func (t *trainer) watch(m *Metrics, answers []*reward.Answer) {
	a := reward.Agree(answers)
	m.Agreement = &a
	m.Alarms = t.state.Watch.Add(a, t.collector.scorer != nil, t.config.Reward.Window)
	for _, alarm := range m.Alarms {
		t.Log.Warn(alarm, "step", t.state.Step)
	}
}

// inputs are the samples of a step that is skipped, for whoever looks for the reason.
func (t *trainer) inputs(samples []*sample) any {
	type dumped struct {
		Prompt     string    `json:"prompt"`
		Answer     string    `json:"answer"`
		Advantages []float32 `json:"advantages"`
	}
	var all []dumped
	k := t.Model.Tokenizer
	for _, s := range samples {
		all = append(all, dumped{k.Decode(s.prompt, false), k.Decode(s.tokens, false), s.advantages})
	}
	return all
}

// learned fills in what the passes of a step tell.
func (m *Metrics) learned(t *trainer, first, last lesson, norm, rate float64) {
	m.Loss, m.GradNorm, m.LR, m.Entropy, m.Clipped = &first.loss, &norm, &rate, &first.entropy, &last.clipped
	if t.learner.reference != nil {
		m.KL = &first.kl
	}
	if first.drawn > 0 {
		m.SamplerKL = &first.samplerKL
	}
	if weight := t.state.EntropyWeight; t.config.Policy.EntropyTarget > 0 {
		m.EntropyWeight = &weight
	}
	m.Tokens, m.Unpacked = first.sharing.Rows, first.sharing.Tokens
}

// time fills in how long a step took.
func (m *Metrics) time(took phases, whole float64) {
	m.Seconds = map[string]float64{"sample": took.Sample, "execute": took.Execute, "score": took.Score, "train": took.Train, "step": whole}
	waited := (took.Execute + took.Score) / whole
	m.Waited = &waited
	if m.Length != nil && took.Sample > 0 {
		m.SampledPerSec = math.Round(*m.Length * float64(m.Samples) / took.Sample)
	}
	m.TokensPerSecond = math.Round(float64(m.Tokens) / whole)
}

// figures are what is shown of a step.
func (m *Metrics) figures() (shown []run.Figure) {
	for _, f := range []struct {
		name  string
		value *float64
	}{{"ex", m.EX}, {"reward", m.Reward}, {"kl", m.KL}, {"entropy", m.Entropy}, {"clipped", m.Clipped}} {
		if f.value != nil {
			shown = append(shown, run.Figure{Name: f.name, Value: *f.value})
		}
	}
	return append(shown, run.Figure{Name: "groups", Value: float64(m.Groups)}, run.Figure{Name: "tokens_per_second", Value: m.SampledPerSec})
}
