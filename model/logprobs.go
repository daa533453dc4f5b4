package model

import (
	"errors"

	"caper/engine"
	"caper/kernels/logprob"
)

// LogProber computes the log-probs of token sequences under a language model. What
// sequences begin with alike is computed once, in packed trees. A LogProber keeps its
// memory from call to call and serves one goroutine at a time.
type LogProber struct {
	// Sharing counts what packing has saved so far.
	Sharing engine.Sharing

	model         *Model
	budget        int
	tape          *engine.Tape
	packer        engine.Packer
	groups        [][][]int32
	rows, targets []int32
	pair          []int // of a row: the pair of rows and targets that predicts it
}

// NewLogProber returns one that computes at most budget tokens at once, but always at
// least one sequence; 0 chooses. The number changes speed and memory, and results by
// rounding alone: a delta net takes a sequence in chunks, which begin anew where a shared
// beginning ends.
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
	l.groups = l.groups[:0]
	for i := range sequences {
		l.groups = append(l.groups, sequences[i:i+1])
	}
	results := make([][]float64, len(sequences))
	for l.packer.Cut(l.groups, l.budget); l.packer.Next(); l.Sharing.Add(&l.packer) {
		l.run(results)
	}
	return results
}

// run computes a micro-batch. Every row of the tree but the roots' first is predicted
// once, by the row before it.
func (l *LogProber) run(results [][]float64) {
	tree := &l.packer.Tree
	l.rows, l.targets, l.pair = l.rows[:0], l.targets[:0], l.pair[:0]
	for r, id := range tree.Tokens {
		l.pair = append(l.pair, len(l.rows))
		if before := tree.Previous(int32(r)); before >= 0 {
			l.rows, l.targets = append(l.rows, before), append(l.targets, id)
		}
	}
	if len(l.rows) == 0 {
		return
	}
	l.tape.Reset()
	y := logprob.Forward(l.tape, l.model.Backbone.Hidden(l.tape, tree), l.model.Head.Tensor, l.rows, l.targets).Values()
	for i, path := range l.packer.Rows {
		var values []float64
		for _, r := range path[min(1, len(path)):] {
			values = append(values, y[l.pair[r]])
		}
		results[l.packer.Groups[i]] = values
	}
}
