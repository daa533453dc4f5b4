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

// scratches is a pool, which hands a thread the scratch that it had last: what
// that remembers is in the caches of its core.
type scratches struct{ pool sync.Pool }

func newScratch() *scratch { return &scratch{cache: newPieceCache()} }

func (p *scratches) borrow() *scratch {
	if s, ok := p.pool.Get().(*scratch); ok {
		return s
	}
	return newScratch()
}

func (p *scratches) giveBack(s *scratch) {
	if cap(s.symbols) > keepSymbols {
		s.symbols, s.chain = nil, chain{}
	}
	p.pool.Put(s)
}
