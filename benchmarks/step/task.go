package main

import (
	"time"

	"caper/engine"
	"caper/kernels/adamw"
	"caper/kernels/logprob"
	"caper/kernels/marginloss"
	"caper/model"
)

// shared is a batch of sequences that begin with the same prompt.
type shared struct{ samples, prompt, answer int }

// sequences draws the batch from a seed: token ids of the model's vocabulary.
func (s shared) sequences(vocabulary int, seed uint64) [][]int32 {
	r := engine.Random(seed, "step", 0, 0)
	draw := func(n int) []int32 {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(r.IntN(vocabulary))
		}
		return ids
	}
	prompt := draw(s.prompt)
	sequences := make([][]int32, s.samples)
	for i := range sequences {
		sequences[i] = append(prompt[:s.prompt:s.prompt], draw(s.answer)...)
	}
	return sequences
}

// tokens is the size of the batch as separate sequences, and as one tree.
func (s shared) tokens() (separate, tree int) {
	return s.samples * (s.prompt + s.answer), s.prompt + s.samples*s.answer
}

// trainer runs optimiser steps on one batch, packed once.
type trainer struct {
	model     *model.Model
	tape      *engine.Tape
	optimiser *adamw.State
	tree      engine.Tree
	paths     [][]int32 // rows of each sequence
	// Language modelling: row rows[i] predicts targets[i] with weight weights[i].
	rows, targets []int32
	weights       []float64
	// Preference: the pairs of scores at the sequences' ends.
	pairs []marginloss.Pair
}

// newTrainer packs the sequences: as one tree, or each one alone.
func newTrainer(m *model.Model, sequences [][]int32, share bool) *trainer {
	t := &trainer{model: m, tape: engine.NewTape(m.Device()), optimiser: adamw.NewState(m.Params(), m.Decays())}
	if share {
		t.paths = t.tree.Pack(sequences)
	} else {
		for _, s := range sequences {
			t.paths = append(t.paths, t.tree.Pack([][]int32{s})...)
		}
	}
	return t
}

// predict asks for the mean next-token loss of all sequences from token `from` on,
// the first that counts. A row that several sequences share carries the targets of
// each: equal ones are one target with their weights added.
func (t *trainer) predict(sequences [][]int32, from int) {
	count := 0
	for _, s := range sequences {
		count += len(s) - from
	}
	at := map[[2]int32]int{}
	for i, s := range sequences {
		for p := from; p < len(s); p++ {
			key := [2]int32{t.paths[i][p-1], s[p]}
			n, known := at[key]
			if !known {
				n = len(t.rows)
				at[key] = n
				t.rows, t.targets, t.weights = append(t.rows, key[0]), append(t.targets, key[1]), append(t.weights, 0)
			}
			t.weights[n] += 1 / float64(count)
		}
	}
}

// prefer asks for the score of each sequence at an even place to exceed the next one's.
func (t *trainer) prefer(sequences [][]int32) {
	for i, s := range sequences {
		t.rows = append(t.rows, t.paths[i][len(s)-1])
		if i%2 == 1 {
			t.pairs = append(t.pairs, marginloss.Pair{Chosen: int32(i - 1), Rejected: int32(i), Weight: 1})
		}
	}
}

// step runs forward, backward and update, and returns the loss.
func (t *trainer) step() float64 {
	for _, p := range t.model.Params() {
		p.ZeroGrad()
	}
	loss := t.gradients()
	adamw.Step(t.model.Device(), t.model.Params(), t.optimiser,
		adamw.Options{LR: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}, 1)
	return loss
}

// gradients adds the step's gradients to those of the parameters.
func (t *trainer) gradients() (loss float64) {
	t.tape.Reset()
	if t.pairs != nil {
		scores := t.model.Scores(t.tape, &t.tree, t.rows)
		out := marginloss.Forward(t.tape, scores, t.pairs, marginloss.Options{WeightSum: float64(len(t.pairs)), PairCount: len(t.pairs)})
		t.tape.Seed(out, 0, 1)
		loss = out.At(0, 0)
	} else {
		hidden := t.model.Backbone.Hidden(t.tape, &t.tree)
		y := logprob.Forward(t.tape, hidden, t.model.Head.Tensor, t.rows, t.targets)
		for i, w := range t.weights {
			loss -= w * y.At(i, 0)
			t.tape.Seed(y, i, -w)
		}
	}
	t.tape.Backward()
	return loss
}

// timed runs one step and returns how long it took.
func (t *trainer) timed() (seconds, loss float64) {
	started := time.Now()
	loss = t.step()
	return time.Since(started).Seconds(), loss
}
