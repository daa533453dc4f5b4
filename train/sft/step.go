package sft

import (
	"slices"
	"time"

	"caper/engine"
	"caper/kernels/logprob"
	"caper/train/run"
)

// measured is what a step measures.
type measured struct{ loss, norm, rate float64 }

// results are what a micro-batch tells, once the device has been waited for. They keep
// their memory from step to step.
type results struct{ logProbs, seeds []float32 }

// step runs one optimiser step: the mean of -log p over all the step's predicted tokens,
// so that the cut into micro-batches changes nothing but memory. The metrics are valid
// until the next step.
func (r *sft) step(examples []*example) (Metrics, error) {
	started := time.Now()
	predicted := predictions(examples)
	r.run.ZeroGrad()
	var sharing engine.Sharing
	r.results = r.results[:0]
	for r.lay(examples, r.config.Train.MicroBatchTokens); r.packer.Next(); sharing.Add(&r.packer) {
		r.microBatch(examples, predicted)
	}
	norm, err := r.run.Norm()
	if err != nil {
		return Metrics{}, err
	}
	r.measured = measured{norm: norm, rate: r.run.Rate()}
	for _, b := range r.results {
		for _, logProb := range b.logProbs {
			r.measured.loss -= float64(logProb) / float64(predicted)
		}
	}
	m := Metrics{Step: r.state.Step + 1, Queries: len(examples), Predicted: predicted,
		Tokens: sharing.Rows, Unpacked: sharing.Tokens, Sharing: sharing.Ratio()}
	if !run.Finite(r.measured.loss, norm) {
		m.Skipped = true
		return m, r.run.Skip(r.dump(examples))
	}
	r.run.Update(r.measured.rate, norm)
	m.Loss, m.GradNorm, m.LR = &r.measured.loss, &r.measured.norm, &r.measured.rate
	m.TokensPerSecond = float64(m.Tokens) / time.Since(started).Seconds()
	return m, nil
}

// predictions counts the tokens that examples predict.
func predictions(examples []*example) int {
	n := 0
	for _, e := range examples {
		n += len(e.tokens) - e.prompt
	}
	return n
}

// lay cuts examples into micro-batches of at most budget tokens.
func (r *sft) lay(examples []*example, budget int) {
	r.groups = r.groups[:0]
	for _, e := range examples {
		r.groups = append(r.groups, e.group[:])
	}
	r.packer.Cut(r.groups, budget)
}

// microBatch adds the gradients of the packed examples: of the tokens after their prompts,
// each predicted at the row before it.
func (r *sft) microBatch(examples []*example, predicted int) {
	r.rows, r.targets = r.rows[:0], r.targets[:0]
	for i, g := range r.packer.Groups {
		e, path := examples[g], r.packer.Rows[i]
		r.rows = append(r.rows, path[e.prompt-1:len(path)-1]...)
		r.targets = append(r.targets, e.tokens[e.prompt:]...)
	}
	out := r.nextResults(len(r.rows))
	for i := range out.seeds {
		out.seeds[i] = -1 / float32(predicted)
	}
	tape := r.run.Tape
	tape.Reset()
	hidden := r.run.Model.Backbone.Hidden(tape, &r.packer.Tree)
	logProbs := logprob.Forward(tape, hidden, r.run.Model.Head.Tensor, r.rows, r.targets)
	tape.Fetch(out.logProbs, logProbs)
	tape.SeedRows(logProbs, out.seeds)
	tape.Backward()
}

// nextResults adds the results of a micro-batch of n predictions to those of the step.
func (r *sft) nextResults(n int) *results {
	if len(r.results) < cap(r.results) {
		r.results = r.results[:len(r.results)+1]
	} else {
		r.results = append(r.results, results{})
	}
	out := &r.results[len(r.results)-1]
	out.logProbs, out.seeds = slices.Grow(out.logProbs[:0], n)[:n], slices.Grow(out.seeds[:0], n)[:n]
	return out
}

// dump is what is kept of a step that was skipped.
func (r *sft) dump(examples []*example) any {
	type dumped struct {
		Database string `json:"db_id"`
		Prompt   string `json:"prompt"`
		Answer   string `json:"answer"`
	}
	words := r.run.Model.Tokenizer
	var all []dumped
	for _, e := range examples {
		all = append(all, dumped{e.db, words.Decode(e.tokens[:e.prompt], false), words.Decode(e.tokens[e.prompt:], false)})
	}
	return all
}
