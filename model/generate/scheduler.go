package generate

import (
	"slices"

	"caper/kernels/attention"
	"caper/kernels/deltarule"
	"caper/kernels/embedding"
	"caper/kernels/linear"
	"caper/kernels/sampling"
	"caper/model"
)

// scheduler decides which prompts and samples take part in a step. All is first come,
// first served, and blocks are set aside before they are needed, so nothing that has
// begun is ever taken back:
//
//   - A request is admitted when nobody waits for room before it and there are blocks
//     for its prompt and one of its samples.
//   - Its prompt is computed, in pieces if it is long, next to the samples under way.
//   - Then the first token of all its samples is drawn from the prompt's last logits,
//     and each joins the running batch as soon as there is a slot and blocks for it.
type scheduler struct {
	model *model.Model
	cache *cache
	batch int // most samples running
	piece int // most prompt tokens of a step
	words int // ids that may be drawn

	blocks    int     // of the cache
	available int     // blocks not set aside
	free      []int32 // blocks not given out
	slots     []int32 // free slots of samples,
	prompts   []int32 // and of prompts

	added    int      // requests so far
	queue    []*group // not admitted yet
	live     []*group // admitted, in their order
	running  []*sample
	drawing  []*sample // who draws in this step
	rows     []int32   // of the step whose logits they draw from,
	distinct []int32   // and each of them once
	draws    []sampling.Draw
	ended    []Result
}

func (s *scheduler) init(g *Generator) {
	s.model, s.batch, s.piece = g.model, g.o.Batch, g.o.Prefill
	s.words = g.model.Head.Rows
	if k := g.model.Tokenizer; k != nil {
		s.words = k.Size() // the rows behind are padding
	}
	s.blocks = (g.o.Tokens + attention.BlockLen - 1) / attention.BlockLen
	s.available = s.blocks
	s.cache = newCache(g.model.Device(), s.blocks, 2*s.batch, s.batch)
	for b := range s.blocks {
		s.free = append(s.free, int32(s.blocks-1-b))
	}
	for i := range s.batch {
		s.slots = append(s.slots, int32(s.batch-1-i))
		s.prompts = append(s.prompts, int32(2*s.batch-1-i))
	}
	// A first step makes the caches of all layers.
	s.cache.addPrompt([]int32{0}, []int32{0}, 0, 0)
	s.model.Backbone.HiddenIn(g.tape, s.cache)
}

// Bytes returns the memory that the cache takes.
func (g *Generator) Bytes() int { return g.cache.bytes() }

// blocksOf is the least that a request needs to be served.
func (s *scheduler) blocksOf(r *Request) int { return promptBlocks(r) + sampleBlocks(r) }

// Add puts a request at the end of the queue.
func (g *Generator) Add(r Request) error {
	if err := g.Check(&r); err != nil {
		return err
	}
	g.queue = append(g.queue, newGroup(r, g.added))
	g.added++
	return nil
}

// Pending is how many requests are not complete.
func (g *Generator) Pending() int { return len(g.queue) + len(g.live) }

// Step computes one token of every running sample and some of the prompts that came
// after, and returns the requests that are complete with it.
func (g *Generator) Step() []Result {
	g.admit()
	g.compose()
	if len(g.cache.tokens) > 0 {
		g.forward()
		g.advance()
	}
	return g.takeEnded()
}

func (s *scheduler) takeEnded() []Result {
	ended := s.ended
	s.ended = nil
	return ended
}

// admit starts samples that wait, then requests.
func (s *scheduler) admit() {
	wanted := len(s.running)
	prefill := 0
	for _, p := range s.live {
		for len(p.waiting) > 0 && len(s.slots) > 0 && (p.reserved || s.available >= sampleBlocks(&p.Request)) {
			s.start(p.waiting[0])
			p.waiting = p.waiting[1:]
			wanted++
		}
		if len(p.waiting) > 0 {
			return
		}
		if p.done < len(p.Prompt) {
			wanted += p.Samples
			prefill += len(p.Prompt) - p.done
		}
	}
	for len(s.queue) > 0 && len(s.prompts) > 0 && wanted < s.batch && prefill < s.piece && s.available >= s.blocksOf(&s.queue[0].Request) {
		p := s.queue[0]
		s.queue = s.queue[1:]
		s.available -= s.blocksOf(&p.Request)
		p.reserved = true
		p.slot = pop(&s.prompts)
		for range promptBlocks(&p.Request) {
			p.table = append(p.table, pop(&s.free))
		}
		s.live = append(s.live, p)
		wanted += p.Samples
		prefill += len(p.Prompt)
	}
}

// start gives a sample its place: the prompt's full blocks are shared, the begun one
// is copied.
func (s *scheduler) start(x *sample) {
	if x.reserved {
		x.reserved = false
	} else {
		s.available -= sampleBlocks(&x.Request)
	}
	x.slot = pop(&s.slots)
	full, begun := len(x.Prompt)/attention.BlockLen, len(x.Prompt)%attention.BlockLen
	x.table = append(make([]int32, 0, full+sampleBlocks(&x.Request)), x.group.table[:full]...)
	if begun > 0 {
		x.table = append(x.table, pop(&s.free))
		s.cache.copyBlock(x.table[full], x.group.table[full], begun)
	}
	// Samples of one prompt stand together, so that attention reads it once for all.
	at := len(s.running)
	for at > 0 && s.running[at-1].index > x.index {
		at--
	}
	s.running = slices.Insert(s.running, at, x)
}

// compose fills the cache's step: a row for each running sample, then pieces of
// prompts.
func (s *scheduler) compose() {
	s.cache.reset()
	s.rows, s.drawing = s.rows[:0], s.drawing[:0]
	for _, x := range s.running {
		if x.position/attention.BlockLen == len(x.table) {
			x.table = append(x.table, pop(&s.free))
		}
		s.rows = append(s.rows, int32(len(s.cache.tokens)))
		s.drawing = append(s.drawing, x)
		s.cache.addToken(x.Tokens[len(x.Tokens)-1], x.table, x.slot, x.group.slot, x.position, len(x.Tokens)-1)
	}
	room := s.piece
	for _, p := range s.live {
		n := min(len(p.Prompt)-p.done, room)
		if p.done+n < len(p.Prompt) {
			n -= n % deltarule.ChunkLen
		}
		if n == 0 {
			continue
		}
		room -= n
		s.cache.addPrompt(p.Prompt[p.done:p.done+n], p.table, p.slot, p.done)
		if p.done += n; p.done == len(p.Prompt) {
			p.open(s)
			for range p.samples {
				s.rows = append(s.rows, int32(len(s.cache.tokens)-1))
			}
			s.drawing = append(s.drawing, p.samples...)
		}
	}
}

// drawRows is how many draws are made at once, which bounds the memory of logits.
const drawRows = 128

// forward computes the step and draws the tokens.
func (g *Generator) forward() {
	t := g.tape
	t.Reset()
	hidden := g.model.Backbone.HiddenIn(t, g.cache)
	g.draws = g.draws[:0]
	for from := 0; from < len(g.rows); from += drawRows {
		to := min(from+drawRows, len(g.rows))
		// Neighbouring samples of one prompt draw their first token from one row.
		rows := slices.Compact(append(g.distinct[:0], g.rows[from:to]...))
		g.distinct = rows
		logits := linear.Forward(t, embedding.Forward(t, hidden, rows), g.model.Head.Tensor)
		for i, row := 0, 0; i < to-from; i++ {
			if rows[row] != g.rows[from+i] {
				row++
			}
			g.draws = append(g.draws, g.drawing[from+i].request(row))
		}
		sampling.Run(t, logits, g.words, g.draws[from:to])
	}
}

// advance gives the tokens to their samples and lets go those that are finished.
func (s *scheduler) advance() {
	for i, x := range s.drawing {
		switch goesOn := x.accept(&s.draws[i]); {
		case goesOn && x.slot < 0:
			x.waiting = append(x.waiting, x)
		case !goesOn:
			s.finish(x)
		}
	}
	s.running = slices.DeleteFunc(s.running, func(x *sample) bool { return x.Finish != "" })
}

// finish gives back what a sample has, and with the last one what its group has.
func (s *scheduler) finish(x *sample) {
	if x.slot >= 0 {
		s.slots = append(s.slots, x.slot)
		s.free = append(s.free, x.table[len(x.Prompt)/attention.BlockLen:]...)
		s.available += sampleBlocks(&x.Request)
	}
	if k := s.model.Tokenizer; k != nil {
		shown := x.Tokens
		if x.Finish == StopToken {
			shown = shown[:len(shown)-1]
		}
		x.Text = k.Decode(shown, false)
		if x.Finish == StopString {
			x.Text = x.Text[:x.match.cut]
		}
	}
	if x.left--; x.left == 0 {
		s.close(x.group)
	}
}

// close ends a group.
func (s *scheduler) close(p *group) {
	if p.slot >= 0 {
		s.prompts = append(s.prompts, p.slot)
		s.free = append(s.free, p.table...)
		s.available += promptBlocks(&p.Request)
		if p.reserved {
			s.available += sampleBlocks(&p.Request)
		}
	}
	r := Result{Index: p.index, Samples: make([]Sample, len(p.samples))}
	for i, x := range p.samples {
		r.Samples[i] = x.Sample
	}
	s.ended = append(s.ended, r)
	s.live = slices.DeleteFunc(s.live, func(other *group) bool { return other == p })
}

// cancel ends all that is not complete and returns it as far as it got. Samples that
// have not begun are Cancelled without a token.
func (s *scheduler) cancel() []Result {
	for _, p := range slices.Concat(s.live, s.queue) {
		if p.samples == nil {
			p.open(s)
		}
		for _, x := range p.samples {
			if x.Finish == "" {
				x.Finish = Cancelled
				s.finish(x)
			}
		}
	}
	s.queue, s.running = nil, nil
	return s.takeEnded()
}

func pop[T any](stack *[]T) T {
	last := len(*stack) - 1
	x := (*stack)[last]
	*stack = (*stack)[:last]
	return x
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
