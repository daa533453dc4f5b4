// Package generate samples from language models. It is made for many samples of each
// of many prompts, as rollouts of a policy are: a prompt is computed once, its keys,
// values and states are shared by its samples, and all samples under way take their
// next token in one pass over the weights. Prompts and samples join and leave that
// batch at any step.
//
// What a sample becomes depends on the weights, its request and its number in it, and
// on nothing else: not on what else is in the batch, nor on the order of requests, the
// options or the number of threads.
//
//	generate.go   requests, results, and the ways to run them
//	scheduler.go  which prompts and samples take part in a step
//	group.go      one request under way
//	cache.go      what a step sees of the tokens before it
//	stop.go       stop strings, across the borders of tokens
package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"caper/engine"
	"caper/kernels/deltarule"
	"caper/kernels/sampling"
	"caper/model"
	"caper/model/decoder"
)

// Options bound memory. They change speed, never a result.
type Options struct {
	// Tokens is how many tokens the cache of keys and values holds: prompts once, and
	// for each sample under way its longest possible answer. 0 means 32768.
	Tokens int
	// Batch is the most samples that are under way together; 0 means 64. A model with
	// gated delta nets keeps a state for each of them and for as many prompts.
	Batch int
	// Prefill is the most prompt tokens computed in one step, in pieces of 64; 0 means
	// 1024. It bounds the memory of a step's activations.
	Prefill int
}

// Request asks for samples that continue one prompt.
type Request struct {
	// Prompt is at least one token.
	Prompt []int32
	// Samples of the prompt; 0 means one.
	Samples int
	// MaxTokens of a sample, at least one. The end token counts.
	MaxTokens int
	// Rule is how tokens are drawn; its zero value is the greedy choice.
	Rule sampling.Rule
	// StopTokens end a sample and are its last token. Of a model's own, see EndTokens.
	StopTokens []int32
	// StopStrings end a sample as soon as its text contains one of them, whatever
	// tokens it is made of. They need a tokenizer.
	StopStrings []string
	// Seed and Stream name the random numbers: those of sample i are the same in every
	// run with these two. Give each prompt of a run another Stream.
	Seed, Stream uint64
}

// Result is what became of a request.
type Result struct {
	// Index counts the requests in the order in which they were added.
	Index   int
	Samples []Sample
}

// Sample is one continuation of a prompt.
type Sample struct {
	// Tokens drawn, the stop token and those of the stop string among them.
	Tokens []int32
	// LogProbs are the logarithms of the probabilities that the model gives them: at
	// temperature 1, over its whole vocabulary, what caper logprobs computes. Drawn
	// are those of the distribution that they were drawn from: after temperature and
	// filters; 0 for greedy choices.
	LogProbs, Drawn []float32
	// Text is the tokens' text without the stop token, up to the stop string; "" for a
	// model without tokenizer.
	Text string
	// Finish says why the sample ended.
	Finish Finish
}

// Finish is the reason why a sample ended.
type Finish string

// A sample ends at a stop token, a stop string or MaxTokens; when its run is cancelled;
// or where the model's logits are not finite, which only damaged weights give.
const (
	StopToken  Finish = "stop_token"
	StopString Finish = "stop_string"
	Length     Finish = "length"
	Cancelled  Finish = "cancelled"
	NotFinite  Finish = "not_finite"
)

// Generator runs requests on one model. It serves one goroutine at a time, which may
// add requests whenever it wants. Its memory is taken when it is made.
type Generator struct {
	model *model.Model
	o     Options
	tape  *engine.Tape
	scheduler
}

// New returns a generator. Models without a language-model head are refused.
func New(m *model.Model, o Options) (*Generator, error) {
	if m.Head == nil {
		return nil, errors.New("a reward model has a score head and no language-model head: generate with a language model, score with caper score")
	}
	o.Tokens, o.Batch, o.Prefill = cmp.Or(o.Tokens, 32768), cmp.Or(o.Batch, 64), cmp.Or(o.Prefill, 1024)
	for name, n := range map[string]int{"tokens of the cache": o.Tokens, "batch": o.Batch, "prefill": o.Prefill} {
		if n < 1 || n > 1<<30 {
			return nil, fmt.Errorf("%s: %d: must be from 1 to %d", name, n, 1<<30)
		}
	}
	if err := fits(m, o.Tokens); err != nil {
		return nil, err
	}
	o.Prefill = roundUp(o.Prefill, deltarule.ChunkLen)
	g := &Generator{model: m, o: o, tape: engine.NewTape(m.Device())}
	g.tape.Inference = true
	g.scheduler.init(g)
	return g, nil
}

// fits refuses a cache of keys and values that the machine has no memory for.
func fits(m *model.Model, tokens int) error {
	c := m.Config.Text.Shared()
	layers := 0
	for _, kind := range c.LayerTypes {
		if kind == decoder.FullAttention {
			layers++
		}
	}
	const float32Bytes = 4
	need, machine := 2*layers*c.KVHeads*c.HeadDim*float32Bytes*tokens, engine.MachineMemory()
	if engine.GPUOf(m.Device()) == nil && need > machine {
		return fmt.Errorf("tokens of the cache: %d take %.1f GB, and the machine has %.1f GB: choose fewer", tokens, float64(need)/1e9, float64(machine)/1e9)
	}
	return nil
}

// Check returns why r cannot be served.
func (g *Generator) Check(r *Request) error {
	vocab, longest := g.model.Config.Text.Shared().VocabSize, g.model.Config.Text.Shared().MaxPositions
	switch {
	case len(r.Prompt) == 0:
		return errors.New("the prompt is empty: give it at least one token")
	case r.Samples < 0 || r.Samples > 1<<20:
		return fmt.Errorf("%d samples: must be from 1 to %d", r.Samples, 1<<20)
	case r.MaxTokens < 1 || r.MaxTokens > 1<<30:
		return fmt.Errorf("at most %d tokens: must be at least 1", r.MaxTokens)
	case longest > 0 && len(r.Prompt)+r.MaxTokens > longest:
		return fmt.Errorf("a prompt of %d tokens and %d new ones: the model's positions end at %d (max_position_embeddings): shorten the prompt or ask for fewer",
			len(r.Prompt), r.MaxTokens, longest)
	case g.blocksOf(r) > g.blocks:
		return fmt.Errorf("a prompt of %d tokens and %d new ones do not fit the cache of %d tokens: raise its budget, shorten the prompt or ask for fewer",
			len(r.Prompt), r.MaxTokens, g.o.Tokens)
	case len(r.StopStrings) > 0 && g.model.Tokenizer == nil:
		return errors.New("stop strings need a tokenizer, and the model folder has no tokenizer.json")
	}
	for _, tokens := range [][]int32{r.Prompt, r.StopTokens} {
		for _, id := range tokens {
			if id < 0 || int(id) >= vocab {
				return fmt.Errorf("token %d: the model's ids end at %d: tokenize with the model's own tokenizer", id, vocab-1)
			}
		}
	}
	for _, s := range r.StopStrings {
		if s == "" {
			return errors.New("an empty stop string: give it a character or leave it out")
		}
	}
	return r.Rule.Check()
}

// Generate runs the requests and returns their results in the same order. When ctx is
// done it stops, and returns what there is together with the context's error: samples
// cut short are Cancelled.
func (g *Generator) Generate(ctx context.Context, requests []Request) ([]Result, error) {
	results := make([]Result, len(requests))
	for r, err := range g.Stream(ctx, func(yield func(Request, error) bool) {
		for _, r := range requests {
			if !yield(r, nil) {
				return
			}
		}
	}) {
		if err != nil {
			return results, err
		}
		results[r.Index] = r
	}
	return results, ctx.Err()
}

// Stream runs requests as they are read and yields each result when it is complete, in
// any order. It reads no further ahead than it has room for. A request that cannot be
// served ends the stream with an error that names its index, after the results of
// those before it. When ctx is done, what is under way comes as it is, and then the
// context's error.
func (g *Generator) Stream(ctx context.Context, requests iter.Seq2[Request, error]) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		next, stop := iter.Pull2(requests)
		defer stop()
		defer g.cancel()
		first, more := g.added, true
		var failure error
		for more || g.Pending() > 0 {
			for g.admit(); more && len(g.queue) == 0; g.admit() {
				r, err, ok := next()
				if ok && err == nil {
					err = g.Add(r)
				}
				if err != nil {
					failure = fmt.Errorf("request %d: %w", g.added-first, err)
				}
				more = ok && err == nil
			}
			results := g.Step()
			if ctx.Err() != nil {
				results, failure, more = append(results, g.cancel()...), ctx.Err(), false
			}
			for _, r := range results {
				r.Index -= first
				if !yield(r, nil) {
					return
				}
			}
		}
		if failure != nil {
			yield(Result{}, failure)
		}
	}
}
