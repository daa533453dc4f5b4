package tokenizer

import "sync"

// scratch is the working memory of one call.
type scratch struct {
	symbols []int32
	ranks   []int32 // of neighbouring symbols
	chain   chain
	cache   pieceCache
}

// keepSymbols bounds the memory that a scratch keeps after a long piece.
const keepSymbols = 1 << 12

// scratches holds those that no call works with, one for every call that ever ran
// at the same time as others. A sync.Pool would lose them, and the pieces that
// they remember, to the garbage collector.
type scratches struct {
	mu   sync.Mutex
	free []*scratch
}

func (p *scratches) borrow() *scratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return &scratch{cache: newPieceCache()}
	}
	s := p.free[last]
	p.free = p.free[:last]
	return s
}

func (p *scratches) giveBack(s *scratch) {
	if cap(s.symbols) > keepSymbols {
		s.symbols, s.chain = nil, chain{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, s)
}
