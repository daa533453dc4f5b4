package tokenizer

import (
	"encoding/binary"
	"math/bits"
)

// pieceCache remembers the ids of pieces met lately. Text repeats itself: of the
// pieces of questions, schemas and queries some 98 in 100 were met before, and
// finding one here costs a small part of merging it again. Every scratch has a
// cache of its own, so that finding takes no lock.
//
// A piece may lie in either slot of one set. The one met last is first, and a
// newcomer pushes out the second.
type pieceCache struct{ sets []cacheSet }

// cacheSet is a line of the processor's cache.
type cacheSet [2]cacheSlot

// cacheSlot is a piece and its ids, 32 bytes in all. Longer pieces and pieces of
// more ids are not kept; there are three such in a thousand.
type cacheSlot struct {
	key    pieceKey
	ids    [3]int32
	count  uint8 // of ids; 0 in a slot that is free
	length uint8 // of the piece in bytes; zero bytes at its end look like padding
}

const (
	// cacheBits makes a cache of 1 MiB, half of the second-level cache of a
	// core, with room for twice the pieces of all Spider and BIRD texts.
	cacheBits = 14
	// keyBytes is the length of the longest piece that is kept.
	keyBytes = 16
)

func newPieceCache() pieceCache {
	return pieceCache{make([]cacheSet, 1<<cacheBits)}
}

// pieceKey is the bytes of a piece, padded with zeros.
type pieceKey struct{ low, high uint64 }

// keyOf returns the key of text[:n], n at most keyBytes.
func keyOf(text string, n int) pieceKey {
	if len(text) < keyBytes {
		var padded [keyBytes]byte
		copy(padded[:], text[:n])
		return pieceKey{binary.LittleEndian.Uint64(padded[:]), binary.LittleEndian.Uint64(padded[8:])}
	}
	// Two loads, wherever the piece ends, and what is behind it cut off.
	mask := &keyMasks[n]
	return pieceKey{load(text) & mask.low, load(text[8:]) & mask.high}
}

// load reads the first 8 bytes of text, as one load.
func load(text string) uint64 {
	_ = text[7]
	return uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
		uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
}

// keyMasks keeps the first n bytes of a key.
var keyMasks = func() (masks [keyBytes + 1]pieceKey) {
	for n := range masks {
		masks[n] = pieceKey{1<<(8*min(n, 8)) - 1, 1<<(8*max(n-8, 0)) - 1}
	}
	return masks
}()

// set returns the two slots where a piece may be.
func (c *pieceCache) set(key pieceKey) *cacheSet {
	hash := (key.low ^ bits.RotateLeft64(key.high*0x9E3779B97F4A7C15, 32)) * 0xD6E8FEB86659FD93
	return &c.sets[hash>>(64-cacheBits)]
}

// holds tells whether the slot is that of a piece of n bytes.
func (s *cacheSlot) holds(key pieceKey, n int) bool {
	return s.key == key && int(s.length) == n && s.count > 0
}

// keep puts a piece of n bytes into the set, if its ids fit.
func (set *cacheSet) keep(key pieceKey, n int, ids []int32) {
	if len(ids) > len(set[0].ids) {
		return
	}
	set[1] = set[0]
	set[0] = cacheSlot{key: key, count: uint8(len(ids)), length: uint8(n)}
	copy(set[0].ids[:], ids)
}

// appendIDs appends the ids of the slot. Most pieces are one token.
func (s *cacheSlot) appendIDs(dst []int32) []int32 {
	if s.count == 1 {
		return append(dst, s.ids[0])
	}
	return append(dst, s.ids[:s.count]...)
}
