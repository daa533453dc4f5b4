package eval

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// logistic is conditional logistic regression: the probability that candidate i
// of a fault is the faulty one is softmax over candidates of w.x_i. The features
// x say what is seen in the candidate, and pair it with the words of the question
// and the kinds of clauses in the query; they are hashed into a fixed number of
// weights (Weinberger et al. 2009). It can learn that "most" without ORDER BY is
// a fault, but not that a word means a column it never saw.
type logistic struct {
	weights []float64
	// squares are the sums of squared gradients, by which AdaGrad scales steps.
	squares []float64
}

// More epochs, or steps three times longer or shorter, rank held-out databases of
// Spider no better.
const (
	logisticBits   = 18
	logisticEpochs = 4
	logisticRate   = 0.1
)

// fitLogistic fits by stochastic gradient descent, the same for the same faults.
func fitLogistic(training []Fault) *logistic {
	l := &logistic{weights: make([]float64, 1<<logisticBits), squares: make([]float64, 1<<logisticBits)}
	evidence := make([]evidence, len(training))
	for i := range training {
		evidence[i] = newEvidence(&training[i])
	}
	order := rand.New(rand.NewPCG(1, 1))
	for range logisticEpochs {
		for _, i := range order.Perm(len(training)) {
			l.step(&evidence[i], training[i].Faulty)
		}
	}
	return l
}

// step follows the gradient of the log-probability of the faulty candidate.
func (l *logistic) step(e *evidence, faulty int) {
	p := softmax(l.logits(e))
	p[faulty]--
	for i, gradient := range p {
		e.features(i, func(at uint32) {
			l.squares[at] += gradient * gradient
			l.weights[at] -= logisticRate * gradient / (1 + math.Sqrt(l.squares[at]))
		})
	}
}

func (l *logistic) logits(e *evidence) []float64 {
	logits := make([]float64, len(e.candidates))
	for i := range logits {
		e.features(i, func(at uint32) { logits[i] += l.weights[at] })
	}
	return logits
}

// score is the Score of the baseline.
func (l *logistic) score(f *Fault) []float64 {
	e := newEvidence(f)
	scores := l.logits(&e)
	for i := range scores {
		scores[i] = -scores[i]
	}
	return scores
}

// softmax replaces logits by probabilities.
func softmax(logits []float64) []float64 {
	highest := math.Inf(-1)
	for _, x := range logits {
		highest = max(highest, x)
	}
	sum := 0.0
	for i, x := range logits {
		logits[i] = math.Exp(x - highest)
		sum += logits[i]
	}
	for i := range logits {
		logits[i] /= sum
	}
	return logits
}

// evidence holds, as hashes, what the features of a fault's candidates are made
// of.
type evidence struct {
	// context is what is common to all: the words of the question and the
	// kinds of clauses in the query.
	context    []uint64
	candidates []candidateEvidence
}

type candidateEvidence struct {
	alone   []uint64 // features as they are
	crossed []uint64 // to be paired with all of the context
}

// features calls use with the place of every feature of candidate i.
func (e *evidence) features(i int, use func(at uint32)) {
	c := &e.candidates[i]
	for _, a := range c.alone {
		use(place(a))
	}
	for _, a := range c.crossed {
		for _, b := range e.context {
			use(place(a*0x9E3779B97F4A7C15 + b))
		}
	}
}

// place hashes once more, so that sums of hashes spread over all bits.
func place(h uint64) uint32 {
	h ^= h >> 31
	return uint32(h * 0xD6E8FEB86659FD93 >> (64 - logisticBits))
}

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

func newEvidence(f *Fault) evidence {
	question := wordSet(f.Wording)
	e := evidence{}
	for _, w := range distinct(words(f.Wording)) {
		e.context = append(e.context, hash("question", w))
	}
	for _, kind := range distinct(f.Kinds) {
		e.context = append(e.context, hash("query", string(kind)))
	}
	for i, unit := range f.Units {
		e.candidates = append(e.candidates, candidateOf(string(f.Kinds[i]), unit, i, question))
	}
	return e
}

func candidateOf(kind, unit string, position int, question map[string]bool) candidateEvidence {
	missing, content := 0, contentWords(unit)
	c := candidateEvidence{crossed: []uint64{hash(kind)}}
	for _, w := range content {
		if !question[w] {
			missing++
		}
		c.alone = append(c.alone, hash(kind, w, strconv.FormatBool(question[w])))
	}
	for _, w := range words(unit) {
		if sqlWords[w] {
			c.alone = append(c.alone, hash(kind, w))
			c.crossed = append(c.crossed, hash(kind, w))
		}
	}
	for _, operator := range []string{"=", "!=", "<>", "<", ">", "%", "*", "("} {
		if strings.Contains(unit, operator) {
			c.alone = append(c.alone, hash(kind, operator))
			c.crossed = append(c.crossed, hash(kind, operator))
		}
	}
	c.alone = append(c.alone,
		hash(kind),
		hash(kind, "missing", strconv.Itoa(min(missing, 4))),
		hash(kind, "missing of", strconv.Itoa(min(missing, 4)), strconv.Itoa(min(len(content), 8))),
		hash(kind, "position", strconv.Itoa(position)),
	)
	return c
}
