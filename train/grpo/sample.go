package grpo

import (
	"strings"

	"caper/model/tokenizer"
	"caper/train/policy"
	"caper/train/reward"
)

// sample is one answer that the policy learns from.
type sample struct {
	prompt, tokens []int32
	drawn          []float32 // log-probs under the distribution that it was drawn from, nil where unknown
	advantages     []float32 // of each token

	// Log-probs of the tokens: under the policy before the step's first update, and under
	// the reference, nil without one.
	old, reference []float32
}

// answerOf is a sampled text as it is judged: the policy's tokens laid over it.
func answerOf(k *tokenizer.Tokenizer, text string, tokens []int32) *reward.Answer {
	a := &reward.Answer{Text: text}
	var bytes strings.Builder
	for _, id := range tokens {
		bytes.WriteString(k.Bytes(id))
		a.Ends = append(a.Ends, bytes.Len())
	}
	// A server may have trimmed the text; an end token is no part of it.
	ahead := max(strings.Index(bytes.String(), text), 0)
	for t, end := range a.Ends {
		a.Ends[t] = min(max(end-ahead, 0), len(text))
	}
	return a
}

// crediting is how rewards become the advantages of tokens.
type crediting struct {
	kind    reward.Kind
	options policy.Options
	// most bounds advantages either way; 0: no bound. Returns of a group that hardly
	// differ as a whole, but clause by clause, would be divided by next to nothing.
	most float64
	// longest and buffer make DAPO's penalty (arXiv 2503.14476, equation 13): 0 up to
	// longest - buffer tokens, then falling to -1 at longest. buffer 0: none.
	longest, buffer int
}

// credit returns the advantages of each token of the answers of a group, nil where the
// group has no signal. Answers whose reward is missing take no part and get none.
func (c crediting) credit(answers []*reward.Answer) (advantages [][]float32, rewarded []policy.Sample, err error) {
	var steps [][]int
	var places []int
	for i, a := range answers {
		if a.Missing != "" {
			continue
		}
		s, of := c.kind.Sample(a)
		s.Penalty = c.penalty(len(a.Ends))
		rewarded, steps, places = append(rewarded, s), append(steps, of), append(places, i)
	}
	values, err := c.options.Advantages(rewarded)
	if err != nil || values == nil {
		return nil, rewarded, err
	}
	advantages = make([][]float32, len(answers))
	for n, i := range places {
		advantages[i] = make([]float32, len(steps[n]))
		for t, step := range steps[n] {
			advantages[i][t] = c.bounded(values[n][step])
		}
	}
	return advantages, rewarded, nil
}

func (c crediting) bounded(advantage float64) float32 {
	if c.most > 0 {
		advantage = min(max(advantage, -c.most), c.most)
	}
	return float32(advantage)
}

func (c crediting) penalty(length int) float64 {
	if c.buffer == 0 {
		return 0
	}
	return -min(max(float64(length-(c.longest-c.buffer))/float64(c.buffer), 0), 1)
}
