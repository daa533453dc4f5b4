package tokenizer

import (
	"fmt"
	"math"
)

// pair is two neighbouring symbols.
type pair struct{ left, right int32 }

// noRank is the rank of a pair that does not merge.
const noRank int32 = math.MaxInt32

// mergeTable holds the merges: the lower the rank, the earlier. Ranks lie in an
// open-addressed hash table with linear probing. Looking up pairs, mostly in vain,
// is where merging spends its time, so a slot is one word and the table small.
type mergeTable struct {
	slots  []uint64 // a power of two, at most half full: pair, rank + 1; 0 is free
	count  int      // of slots in use
	merges []pair   // by rank
	ids    []int32  // by rank: what the pair turns into
}

// A slot has 44 bits for a pair and 20 for a rank.
const (
	idBits    = 22
	rankBits  = 64 - 2*idBits
	maxMerges = 1<<rankBits - 1
)

func (p pair) bits() uint64 { return uint64(uint32(p.left))<<idBits | uint64(uint32(p.right)) }

// slot returns the index of the slot where a pair is, or where it would go.
func (t *mergeTable) slot(p pair) int {
	bits := p.bits()
	mask := len(t.slots) - 1
	for i := int(bits*0x9E3779B97F4A7C15>>32) & mask; ; i = (i + 1) & mask {
		if s := t.slots[i]; s == 0 || s>>rankBits == bits {
			return i
		}
	}
}

// rank returns the rank of p, noRank if it does not merge.
func (t *mergeTable) rank(p pair) int32 {
	if len(t.slots) == 0 {
		return noRank
	}
	if s := t.slots[t.slot(p)]; s != 0 {
		return int32(s&maxMerges) - 1
	}
	return noRank
}

// add adds a merge of the next rank. Of a pair that is added twice the last rank
// counts, as in the tokenizers library.
func (t *mergeTable) add(p pair, id int32) error {
	if len(t.merges) == maxMerges {
		return fmt.Errorf("more than %d merges are not supported", maxMerges)
	}
	t.merges, t.ids = append(t.merges, p), append(t.ids, id)
	if 2*(t.count+1) > len(t.slots) {
		t.grow()
	}
	i := t.slot(p)
	if t.slots[i] == 0 {
		t.count++
	}
	t.slots[i] = p.bits()<<rankBits | uint64(len(t.merges))
	return nil
}

func (t *mergeTable) grow() {
	old := t.slots
	t.slots = make([]uint64, max(16, 2*len(old)))
	for _, s := range old {
		if s != 0 {
			bits := s >> rankBits
			t.slots[t.slot(pair{int32(bits >> idBits), int32(bits & (1<<idBits - 1))})] = s
		}
	}
}

// longPiece is the length from which the heap is faster than scanning for the
// lowest rank again and again.
const longPiece = 64

// reduce is merge for symbols of which nothing is known.
func (t *mergeTable) reduce(symbols []int32, s *scratch) []int32 {
	if len(symbols) >= longPiece {
		return t.mergeLong(symbols, s)
	}
	s.ranks = s.ranks[:0]
	for i := 1; i < len(symbols); i++ {
		s.ranks = append(s.ranks, t.rank(pair{symbols[i-1], symbols[i]}))
	}
	return t.merge(symbols, s.ranks)
}

// merge merges symbols in place until no pair merges, always the pair of lowest
// rank and among equals the leftmost, and returns what is left. ranks[i] is the
// rank of symbols i and i+1.
func (t *mergeTable) merge(symbols, ranks []int32) []int32 {
	for len(ranks) > 0 {
		at := 0
		for i, rank := range ranks {
			if rank < ranks[at] {
				at = i
			}
		}
		if ranks[at] == noRank {
			break
		}
		symbols[at] = t.ids[ranks[at]]
		symbols = append(symbols[:at+1], symbols[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		if at > 0 {
			ranks[at-1] = t.rank(pair{symbols[at-1], symbols[at]})
		}
		if at < len(ranks) {
			ranks[at] = t.rank(pair{symbols[at], symbols[at+1]})
		}
	}
	return symbols
}
