package grpo

import (
	"math"
	"slices"

	"caper/engine"
	"caper/kernels/logprob"
	"caper/kernels/policyloss"
	"caper/model"
)

// learner makes a policy better at what samples were rewarded for.
type learner struct {
	model     *model.Model
	params    []*engine.Param
	tape      *engine.Tape
	reference *reference // nil without a divergence from one
	loss      policyloss.Options
	tokens    int // of a micro-batch at most
	// importance bounds the ratio of the policy before the step to what samples were
	// drawn from, by which each token counts; 0: all count as if drawn from the policy.
	importance float64

	packer        engine.Packer
	groups        [][][]int32
	rows, targets []int32
}

// lesson is what a pass over samples measures.
type lesson struct {
	loss float64
	// Means over tokens: of -log p of the sampled tokens, which estimates the entropy; of
	// k3 to the reference; the share whose ratio was past a bound; of k3 from what they
	// were drawn from to the policy, over the drawn tokens.
	entropy, kl, clipped, samplerKL float64
	drawn                           int
	sharing                         engine.Sharing
}

// gradients sets the gradients of a step's loss. weights are those of each sample's
// tokens. In the first pass it takes down the log-probs that later ones compare with.
// shift is added to each token's advantage, given its old log-prob.
func (l *learner) gradients(samples []*sample, weights []float32, first bool, shift func(old float64) float64) lesson {
	var m lesson
	for _, p := range l.params {
		p.ZeroGrad()
	}
	total := 0
	for _, s := range samples {
		total += len(s.tokens)
	}
	for l.lay(samples); l.packer.Next(); m.sharing.Add(&l.packer) {
		l.pairs(samples)
		if first && l.reference != nil {
			l.compare(samples)
		}
		l.microBatch(samples, weights, first, shift, &m)
	}
	n := float64(max(total, 1))
	m.entropy, m.kl, m.clipped = m.entropy/n, m.kl/n, m.clipped/n
	m.samplerKL /= float64(max(m.drawn, 1))
	return m
}

// lay cuts samples into micro-batches.
func (l *learner) lay(samples []*sample) {
	l.groups = l.groups[:0]
	for _, s := range samples {
		l.groups = append(l.groups, [][]int32{slices.Concat(s.prompt, s.tokens)})
	}
	l.packer.Cut(l.groups, l.tokens)
}

// pairs lists, for the tokens of the packed samples in their order, the row that predicts
// each.
func (l *learner) pairs(samples []*sample) {
	l.rows, l.targets = l.rows[:0], l.targets[:0]
	for i, g := range l.packer.Groups {
		s := samples[g]
		l.rows = append(l.rows, l.packer.Rows[i][len(s.prompt)-1:len(s.prompt)+len(s.tokens)-1]...)
		l.targets = append(l.targets, s.tokens...)
	}
}

// compare takes down the reference's log-probs.
func (l *learner) compare(samples []*sample) {
	values := l.reference.logProbs(&l.packer.Tree, l.rows, l.targets)
	for _, g := range l.packer.Groups {
		s := samples[g]
		s.reference, values = float32s(values[:len(s.tokens)]), values[len(s.tokens):]
	}
}

// microBatch adds the gradients of the packed samples.
func (l *learner) microBatch(samples []*sample, weights []float32, first bool, shift func(float64) float64, m *lesson) {
	l.forward(func(logProbs *engine.Tensor) {
		tokens := l.see(samples, logProbs.Values(), weights, first, shift, m)
		loss := policyloss.Forward(l.tape, logProbs, tokens, l.loss)
		l.tape.SeedRows(loss, one)
		m.loss += loss.Values()[0]
	})
}

// forward computes the log-probs of the packed tokens and, once seed has set the gradients
// of what it made of them, runs backward.
func (l *learner) forward(seed func(logProbs *engine.Tensor)) {
	l.tape.Reset()
	hidden := l.model.Backbone.Hidden(l.tape, &l.packer.Tree)
	seed(logprob.Forward(l.tape, hidden, l.model.Head.Tensor, l.rows, l.targets))
	l.tape.Backward()
}

// see returns the packed tokens as the loss sees them, given their log-probs.
func (l *learner) see(samples []*sample, values []float64, weights []float32, first bool, shift func(float64) float64, m *lesson) []policyloss.Token {
	tokens := make([]policyloss.Token, 0, len(values))
	at := 0
	for _, g := range l.packer.Groups {
		s := samples[g]
		own := values[at : at+len(s.tokens)]
		at += len(own)
		if first {
			s.old = float32s(own)
		}
		for t := range own {
			tokens = append(tokens, l.token(s, t, weights[g], shift))
			m.measure(l, s, t, own[t], tokens[len(tokens)-1])
		}
	}
	return tokens
}

// one is the derivative of a loss with respect to itself.
var one = []float32{1}

// token is token t of a sample as the loss sees it.
func (l *learner) token(s *sample, t int, weight float32, shift func(float64) float64) policyloss.Token {
	k := policyloss.Token{Old: s.old[t], Advantage: s.advantages[t], Weight: weight}
	if shift != nil {
		k.Advantage += float32(shift(float64(k.Old)))
	}
	if s.reference != nil {
		k.Reference = s.reference[t]
	}
	if l.importance > 0 && s.drawn != nil {
		k.Advantage *= float32(math.Min(math.Exp(float64(s.old[t]-s.drawn[t])), l.importance))
	}
	return k
}

// measure adds one token.
func (m *lesson) measure(l *learner, s *sample, t int, logProb float64, k policyloss.Token) {
	m.entropy -= logProb
	if s.reference != nil {
		m.kl += k3(float64(s.reference[t]) - logProb)
	}
	if l.loss.Clipped(k, logProb) {
		m.clipped++
	}
	if s.drawn != nil {
		m.samplerKL += k3(logProb - float64(s.drawn[t]))
		m.drawn++
	}
}

// k3 estimates a divergence by the logarithm of the ratio q/p of tokens drawn from p.
func k3(logRatio float64) float64 { return math.Expm1(logRatio) - logRatio }

func float32s(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	return out
}

// reference is the policy that the learner keeps near to.
type reference struct {
	model *model.Model
	// adapted says that model is the learner's own, and the reference what it is without
	// its adapter.
	adapted bool
	tape    *engine.Tape
}

func newReference(m *model.Model, adapted bool) *reference {
	r := &reference{model: m, adapted: adapted, tape: engine.NewTape(m.Device())}
	r.tape.Inference = true
	return r
}

// logProbs returns log p(targets[n] | rows[n]).
func (r *reference) logProbs(tree *engine.Tree, rows, targets []int32) (values []float64) {
	compute := func() {
		r.tape.Reset()
		values = logprob.Forward(r.tape, r.model.Backbone.Hidden(r.tape, tree), r.model.Head.Tensor, rows, targets).Values()
	}
	if r.adapted {
		r.model.Adapter.Without(compute)
	} else {
		compute()
	}
	return values
}
