package run

import "caper/engine"

// Position is where a run's steps are in its data. A trainer that takes its steps from
// Passes has it in its state.
type Position struct {
	Epoch int `json:"epoch"` // under way
	Next  int `json:"next"`  // items of it done
}

// Passes goes through a run's items epoch after epoch, in an order that depends on seed
// and epoch alone.
type Passes struct {
	position *Position
	seed     uint64
	sizes    []int
	batch    int
	order    []int // items of the epoch
	taken    []int
}

// NewPasses returns the passes from a position on over items of the given sizes, of which
// a step takes as many as reach batch.
func NewPasses(p *Position, seed uint64, sizes []int, batch int) *Passes {
	return &Passes{position: p, seed: seed, sizes: sizes, batch: batch}
}

// From returns the same passes from a position of their own on, now that of p.
func (p *Passes) From(at *Position) *Passes {
	*at = *p.position
	return NewPasses(at, p.seed, p.sizes, p.batch)
}

// Steps counts the steps of some epochs by taking them.
func (p *Passes) Steps(epochs int) int {
	var start Position
	steps := 0
	for all := NewPasses(&start, p.seed, p.sizes, p.batch); start.Epoch < epochs; steps++ {
		all.Take()
	}
	return steps
}

// Take returns the items of the next step and moves past them: as many as reach the
// batch, never beyond the epoch. They are valid until the next call.
func (p *Passes) Take() []int {
	at := p.position
	if at.Next == 0 || len(p.order) == 0 {
		p.shuffle()
	}
	p.taken = p.taken[:0]
	for n := 0; n < p.batch && at.Next < len(p.order); at.Next++ {
		item := p.order[at.Next]
		p.taken = append(p.taken, item)
		n += p.sizes[item]
	}
	if at.Next >= len(p.order) {
		at.Epoch++
		at.Next = 0
	}
	return p.taken
}

// Done is how many epochs are done, with the share of the one under way.
func (p *Passes) Done() float64 {
	return float64(p.position.Epoch) + float64(p.position.Next)/float64(len(p.sizes))
}

func (p *Passes) shuffle() {
	p.order = p.order[:0]
	for i := range p.sizes {
		p.order = append(p.order, i)
	}
	engine.Random(p.seed, "shuffle", uint64(p.position.Epoch), 0).
		Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
}
