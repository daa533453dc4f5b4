package plan

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"caper/data"
	"caper/engine"
)

// Sharing is what packed prefix trees save on a data set, in one epoch.
type Sharing struct {
	Prompts   int `json:"prompts"`
	Sequences int `json:"sequences"`
	// Tokens of the sequences one by one, and as trees in which the sequences of a
	// prompt share their beginnings.
	Separate float64 `json:"separate_tokens"`
	Packed   float64 `json:"packed_tokens"`
	Longest  float64 `json:"longest_sequence"`
	// Estimated is set where there was no tokenizer: tokens are bytes / BytesPerToken.
	Estimated bool `json:"estimated"`
	// Hours of an epoch on all GPUs, at the plan's utilisation.
	SeparateHours float64 `json:"separate_hours"`
	PackedHours   float64 `json:"packed_hours"`

	separatePairs, packedPairs float64 // of a token and one that it sees
}

// Text is a prompt and what follows it in each of its sequences.
type Text struct {
	Prompt        string
	Continuations []string
}

// BytesPerToken is how long a token of schemas, questions and SQL is, about, where there
// is no tokenizer to say.
const BytesPerToken = 3.5

// Share packs each text's sequences into a tree and counts. encode turns text into
// tokens; nil counts bytes.
func Share(texts iter.Seq[Text], encode func(string) []int32) *Sharing {
	s := &Sharing{Estimated: encode == nil}
	scale := 1.0
	if encode == nil {
		encode, scale = bytesOfText, 1/BytesPerToken
	}
	var tree engine.Tree
	for text := range texts {
		prompt := encode(text.Prompt)
		var sequences [][]int32
		for _, c := range text.Continuations {
			sequence := append(prompt[:len(prompt):len(prompt)], encode(c)...)
			n := float64(len(sequence))
			s.Separate += scale * n
			s.separatePairs += scale * scale * n * (n + 1) / 2
			s.Longest = max(s.Longest, scale*n)
			sequences = append(sequences, sequence)
		}
		tree.Reset()
		tree.Pack(sequences)
		s.Prompts++
		s.Sequences += len(sequences)
		s.Packed += scale * float64(tree.Rows())
		for _, p := range tree.Position {
			s.packedPairs += scale * scale * float64(p+1)
		}
	}
	return s
}

// TupleTexts gathers tuples by their prompt, each with its two continuations.
func TupleTexts(ctx context.Context, tuples iter.Seq2[data.Tuple, error]) (iter.Seq[Text], error) {
	var g group
	for t, err := range tuples {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		g.add(t.Prompt, t.Prefix+t.Chosen, t.Prefix+t.Rejected)
	}
	return slices.Values(g.texts), nil
}

// RolloutTexts gathers rollouts by their prompt.
func RolloutTexts(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], prompt func(data.Rollout) (string, error)) (iter.Seq[Text], error) {
	var g group
	for r, err := range rollouts {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		p, err := prompt(r)
		if err != nil {
			return nil, err
		}
		g.add(p, r.SQL)
	}
	return slices.Values(g.texts), nil
}

// group gathers continuations by their prompt, in the order of the prompts.
type group struct {
	texts []Text
	index map[string]int
}

func (g *group) add(prompt string, continuations ...string) {
	i, ok := g.index[prompt]
	if !ok {
		if g.index == nil {
			g.index = map[string]int{}
		}
		i = len(g.texts)
		g.index[prompt] = i
		g.texts = append(g.texts, Text{Prompt: prompt})
	}
	g.texts[i].Continuations = append(g.texts[i].Continuations, continuations...)
}

func bytesOfText(text string) []int32 {
	tokens := make([]int32, len(text))
	for i := range text {
		tokens[i] = int32(text[i])
	}
	return tokens
}

// SetSharing adds to the plan what a data set takes with and without shared prompts. A
// sequence's operations are those of its tokens and, in attention, of its pairs of a
// token and one that it sees.
func (p *Plan) SetSharing(s *Sharing) {
	attention := 0.0
	for _, l := range p.walk.Launches {
		if l.Operator == "attention" {
			attention += l.FLOPs - l.Again
		}
	}
	n, length := float64(p.Batch.Tokens()), float64(p.Batch.Length)
	perPair := attention / (float64(p.Batch.Sequences) * length * (length + 1) / 2)
	perToken := p.FLOPs.Model - attention/n
	hours := func(tokens, pairs float64) float64 {
		return (tokens*perToken + pairs*perPair) / (p.Speed.MFU * p.Card.Peak * float64(p.GPUs)) / 3600
	}
	s.SeparateHours, s.PackedHours = hours(s.Separate, s.separatePairs), hours(s.Packed, s.packedPairs)
	p.Sharing = s
}
