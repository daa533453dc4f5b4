package tokenizer

import "math"

// pair is two neighbouring symbols.
type pair struct{ left, right int32 }

// merge is what a pair turns into: the lower the rank, the earlier.
type merge struct{ rank, id int32 }

// noMerge marks a pair that does not merge.
var noMerge = merge{rank: math.MaxInt32}

// mergeTable maps a pair to its merge. It is an open-addressed hash table with
// linear probing: looking up pairs, mostly in vain, is where encoding spends its
// time.
type mergeTable struct {
	slots []mergeSlot // a power of two, at most half full
	count int
}

type mergeSlot struct {
	pair  pair
	merge merge
	used  bool
}

// newMergeTable returns a table with room for n merges.
func newMergeTable(n int) mergeTable {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return mergeTable{slots: make([]mergeSlot, size)}
}

// slot returns where p is, or where it would go.
func (t *mergeTable) slot(p pair) *mergeSlot {
	hash := (uint64(uint32(p.left))<<32 | uint64(uint32(p.right))) * 0x9E3779B97F4A7C15
	mask := len(t.slots) - 1
	for i := int(hash>>32) & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; !s.used || s.pair == p {
			return s
		}
	}
}

// find returns what p turns into, noMerge if nothing.
func (t *mergeTable) find(p pair) merge {
	if s := t.slot(p); s.used {
		return s.merge
	}
	return noMerge
}

// set adds or replaces a merge.
func (t *mergeTable) set(p pair, m merge) {
	s := t.slot(p)
	if !s.used {
		if 2*(t.count+1) > len(t.slots) {
			t.grow()
			s = t.slot(p)
		}
		t.count++
	}
	*s = mergeSlot{p, m, true}
}

func (t *mergeTable) grow() {
	old := t.slots
	*t = newMergeTable(len(old))
	for _, s := range old {
		if s.used {
			*t.slot(s.pair) = s
			t.count++
		}
	}
}

// longPiece is the length from which the heap is faster than scanning for the
// lowest rank again and again.
const longPiece = 64

// merge merges symbols in place until no pair merges, always the pair of lowest
// rank and among equals the leftmost, and returns what is left.
func (t *mergeTable) merge(symbols []int32, s *scratch) []int32 {
	if len(symbols) >= longPiece {
		return t.mergeLong(symbols, s)
	}
	// found[i] is the merge of symbols i and i+1.
	found := s.found[:0]
	for i := 1; i < len(symbols); i++ {
		found = append(found, t.find(pair{symbols[i-1], symbols[i]}))
	}
	s.found = found
	for len(found) > 0 {
		at := 0
		for i, m := range found {
			if m.rank < found[at].rank {
				at = i
			}
		}
		if found[at] == noMerge {
			break
		}
		symbols[at] = found[at].id
		symbols = append(symbols[:at+1], symbols[at+2:]...)
		found = append(found[:at], found[at+1:]...)
		if at > 0 {
			found[at-1] = t.find(pair{symbols[at-1], symbols[at]})
		}
		if at < len(found) {
			found[at] = t.find(pair{symbols[at], symbols[at+1]})
		}
	}
	return symbols
}
