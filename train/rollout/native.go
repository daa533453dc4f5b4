package rollout

import (
	"context"
	"fmt"
	"iter"

	"caper/kernels/sampling"
	"caper/model"
	"caper/model/generate"
)

// Options are how answers are drawn.
type Options struct {
	// Samples of each question.
	Samples int
	// MaxTokens of an answer, the end token among them.
	MaxTokens int
	Rule      sampling.Rule
	// EndTokens end an answer.
	EndTokens []int32
	Seed      uint64
	// Memory bounds the sampler's memory and changes no sample.
	Memory generate.Options
}

// Native samples with the weights that are being trained, where they lie: an update
// costs nothing. A prompt is computed once for all samples of its group.
type Native struct {
	o         Options
	generator *generate.Generator
	version   int
}

var _ Source = (*Native)(nil)

// NewNative returns the sampler of m, whose weights are those of step version.
func NewNative(m *model.Model, o Options, version int) (*Native, error) {
	g, err := generate.New(m, o.Memory)
	if err != nil {
		return nil, err
	}
	return &Native{o: o, generator: g, version: version}, nil
}

// Groups implements Source. What a sample becomes depends on the weights, the seed, the
// step, its question and its number, whatever else is sampled beside it.
func (n *Native) Groups(ctx context.Context, step int, questions []Question) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		var asked []Question
		for _, q := range questions {
			r := n.request(step, q)
			if err := n.generator.Check(&r); err != nil {
				g := Group{Question: q.Index}
				g.lose(err.Error(), n.o.Samples)
				if !yield(g, nil) {
					return
				}
				continue
			}
			asked = append(asked, q)
		}
		requests := func(yield func(generate.Request, error) bool) {
			for _, q := range asked {
				if !yield(n.request(step, q), nil) {
					return
				}
			}
		}
		for result, err := range n.generator.Stream(ctx, requests) {
			if err != nil && ctx.Err() == nil {
				yield(Group{}, fmt.Errorf("sampling of step %d: %w", step, err))
				return
			}
			if err == nil && ctx.Err() == nil && !yield(n.group(asked[result.Index], result), nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil { // some groups were cut short, or left out
			yield(Group{}, err)
		}
	}
}

// Update implements Source: the sampler reads the trainer's weights where they are.
func (n *Native) Update(_ context.Context, _ *model.Model, step int) error {
	n.version = step
	return nil
}

func (n *Native) request(step int, q Question) generate.Request {
	return generate.Request{
		Prompt: q.Tokens, Samples: n.o.Samples, MaxTokens: n.o.MaxTokens, Rule: n.o.Rule, StopTokens: n.o.EndTokens,
		Seed: n.o.Seed, Stream: uint64(step)<<32 | uint64(uint32(q.Index)),
	}
}

func (n *Native) group(q Question, r generate.Result) Group {
	g := Group{Question: q.Index}
	for _, s := range r.Samples {
		if s.Finish == generate.NotFinite {
			g.lose("logits are not finite", 1)
			continue
		}
		g.Samples = append(g.Samples, Sample{Text: s.Text, Tokens: s.Tokens, LogProbs: s.Drawn, Finish: s.Finish, Version: n.version})
	}
	return g
}
