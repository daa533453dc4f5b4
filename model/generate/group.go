package generate

import (
	"math/rand/v2"

	"caper/engine"
	"caper/kernels/attention"
	"caper/kernels/sampling"
)

// group is one request under way: a prompt, and its samples.
type group struct {
	Request
	index int
	stops []*pattern

	// The prompt's place in the cache: its blocks, and the slot of its state.
	table []int32
	slot  int32
	done  int // prompt tokens computed
	// reserved says that blocks for one sample are set aside, so that a group which
	// has been admitted can always go on.
	reserved bool

	samples []*sample
	waiting []*sample // the prompt is computed, their first token drawn, no room yet
	left    int       // samples not finished
}

// sample is one continuation under way.
type sample struct {
	*group
	Sample
	random *rand.Rand
	match  *matcher // nil without stop strings

	// Its place in the cache, while it is running: the prompt's full blocks and its
	// own; its slot; and from when on it has a state of its own.
	table    []int32
	slot     int32
	position int // of the last token in Tokens, which the cache does not hold yet
}

// promptBlocks is how many blocks a prompt takes, sampleBlocks how many a sample takes
// beyond the full ones of its prompt: the last token drawn is never stored.
func promptBlocks(r *Request) int {
	return (len(r.Prompt) + attention.BlockLen - 1) / attention.BlockLen
}

func sampleBlocks(r *Request) int {
	if r.MaxTokens == 1 {
		return 0
	}
	return (len(r.Prompt)+r.MaxTokens-2)/attention.BlockLen + 1 - len(r.Prompt)/attention.BlockLen
}

func newGroup(r Request, index int) *group {
	g := &group{Request: r, index: index, slot: -1}
	for _, s := range r.StopStrings {
		g.stops = append(g.stops, newPattern(s))
	}
	g.Samples = max(g.Samples, 1)
	g.left = g.Samples
	return g
}

// open makes the group's samples.
func (g *group) open(s *scheduler) {
	g.samples = make([]*sample, g.Samples)
	for i := range g.samples {
		room := min(g.MaxTokens, firstRoom)
		x := &sample{group: g, slot: -1, position: len(g.Prompt) - 1, random: engine.Random(g.Seed, "generate", g.Stream, uint64(i))}
		x.Tokens, x.LogProbs, x.Drawn = make([]int32, 0, room), make([]float32, 0, room), make([]float32, 0, room)
		if len(g.stops) > 0 {
			x.match = &matcher{decoder: s.model.Tokenizer.Decoder(false), patterns: g.stops, matched: make([]int, len(g.stops))}
		}
		g.samples[i] = x
	}
}

// firstRoom is for how many tokens a sample has room before it must grow.
const firstRoom = 1024

// request is what the sample draws next, from a row of the logits.
func (x *sample) request(row int) sampling.Draw {
	return sampling.Draw{
		Row: int32(row), Uniform: x.random.Float64(),
		Temperature: x.Rule.Temperature, TopK: int32(x.Rule.TopK), TopP: x.Rule.TopP, MinP: x.Rule.MinP,
	}
}

// accept takes the token drawn and reports whether the sample goes on.
func (x *sample) accept(d *sampling.Draw) bool {
	if d.Token < 0 {
		x.Finish = NotFinite
		return false
	}
	x.Tokens = append(x.Tokens, d.Token)
	x.LogProbs = append(x.LogProbs, d.LogProb)
	x.Drawn = append(x.Drawn, d.Drawn)
	x.position++
	for _, id := range x.StopTokens {
		if id == d.Token {
			x.Finish = StopToken
			return false
		}
	}
	if x.match != nil && x.match.next(d.Token) {
		x.Finish = StopString
		return false
	}
	if len(x.Tokens) == x.MaxTokens {
		x.Finish = Length
		return false
	}
	return true
}
