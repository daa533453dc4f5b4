package model

import (
	"errors"

	"caper/engine"
	"caper/kernels/logprob"
)

// LogProber computes the log-probs of token sequences under a language model. What
// neighbouring sequences begin with is computed once, in a packed tree. A LogProber
// keeps its memory from call to call and serves one goroutine at a time.
type LogProber struct {
	model         *Model
	budget        int
	tape          *engine.Tape
	tree          engine.Tree
	rows, targets []int32
}

// NewLogProber returns one that computes at most budget tokens at once, but always at
// least one sequence; 0 chooses. The number changes speed and memory, not the results.
func NewLogProber(m *Model, budget int) (*LogProber, error) {
	if m.Head == nil {
		return nil, errors.New("a reward model has a score head and no language-model head: it gives scores (caper score), not log-probs")
	}
	if budget <= 0 {
		budget = defaultBudget
	}
	l := &LogProber{model: m, budget: budget, tape: engine.NewTape(m.dev)}
	l.tape.Inference = true
	return l, nil
}

// LogProbs returns, for each sequence of T tokens, the logarithms of the probabilities
// of its tokens 1 to T-1, each given all before it.
func (l *LogProber) LogProbs(sequences [][]int32) [][]float64 {
	results := make([][]float64, 0, len(sequences))
	first, tokens := 0, 0
	for i, s := range sequences {
		fresh := len(s)
		if i > first {
			fresh -= common(sequences[i-1], s)
		}
		if i > first && tokens+fresh > l.budget {
			results = l.run(results, sequences[first:i])
			first, tokens, fresh = i, 0, len(s)
		}
		tokens += fresh
	}
	return l.run(results, sequences[first:])
}

// common is how many tokens a and b both begin with.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// run appends the results of one micro-batch. Every row of the tree but the roots'
// first is predicted once, by the row before it.
func (l *LogProber) run(results [][]float64, sequences [][]int32) [][]float64 {
	l.tape.Reset()
	l.tree.Reset()
	paths := l.tree.Pack(sequences)
	l.rows, l.targets = l.rows[:0], l.targets[:0]
	pair := make([]int, l.tree.Rows()) // of a row: the pair that predicts it
	for r, id := range l.tree.Tokens {
		if before := l.tree.Previous(int32(r)); before >= 0 {
			pair[r] = len(l.rows)
			l.rows, l.targets = append(l.rows, before), append(l.targets, id)
		}
	}
	if len(l.rows) == 0 {
		return append(results, make([][]float64, len(sequences))...)
	}
	y := logprob.Forward(l.tape, l.model.Backbone.Hidden(l.tape, &l.tree), l.model.Head.Tensor, l.rows, l.targets)
	for _, path := range paths {
		var values []float64
		for _, r := range path[min(1, len(path)):] {
			values = append(values, y.At(pair[r], 0))
		}
		results = append(results, values)
	}
	return results
}
