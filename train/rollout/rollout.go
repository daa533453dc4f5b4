// Package rollout samples answers of a policy, in groups of several for each question:
// by the native sampler on the trainer's own weights, or from a model server.
//
//	rollout.go  questions, samples, groups, and what gives them
//	native.go   the native sampler
//	server.go   samples from a model server
//	push.go     handing weights over to it
package rollout

import (
	"context"
	"iter"

	"caper/model"
	"caper/model/generate"
)

// Question is one prompt to answer.
type Question struct {
	// Index is the question's place in the caller's list. With seed and step it keys
	// the random numbers of its samples.
	Index int
	// Prompt is the model's input, Tokens the same in the policy's own tokens.
	Prompt string
	Tokens []int32
}

// Sample is one answer.
type Sample struct {
	Text string
	// Tokens are those drawn, the end token among them where it was drawn.
	Tokens []int32
	// LogProbs are those of Tokens under the distribution that they were drawn from;
	// nil from a server that gives none: the trainer computes them.
	LogProbs []float32
	Finish   generate.Finish
	// Version is the step of the weights that drew the sample.
	Version int
}

// Group is the answers of one question.
type Group struct {
	Question int // its Index
	Samples  []Sample
	// Lost counts the samples that were asked for and did not come, by reason. They
	// are no part of the group: it is smaller, and other groups are as they were.
	Lost map[string]int
}

// lose counts lost samples.
func (g *Group) lose(reason string, n int) {
	if n == 0 {
		return
	}
	if g.Lost == nil {
		g.Lost = map[string]int{}
	}
	g.Lost[reason] += n
}

// Source gives groups. It serves one caller at a time.
type Source interface {
	// Groups samples each question with the newest weights and yields its group as soon
	// as that is complete, in any order. A question that cannot be asked at all, such
	// as one too long for the model, comes as an empty group that says so. The error
	// is ctx's, or one that no other question would escape either; it ends the sequence.
	Groups(ctx context.Context, step int, questions []Question) iter.Seq2[Group, error]
	// Update hands over the weights after a step; on return the source answers with
	// them, or says with which in Sample.Version.
	Update(ctx context.Context, m *model.Model, step int) error
}
