package attention

import (
	"slices"

	"caper/engine"
)

const (
	// tileLen is the (row, head) pairs of a tile of queries and the positions of a tile of
	// keys of the CUDA kernels (op.cu).
	tileLen = 64
	// wideLen is the pairs of a tile of queries of the path for Hopper.
	wideLen = 2 * tileLen
)

// tiles are the tables by which CUDA kernels find what the rows of a tree see.
type tiles struct {
	// queries [.][4] are the tiles of queries of 64 pairs, and wide those of 128, those with
	// most keys first: first pair; end of the segment's pairs; what a row's position is above
	// its number; and where in keys its segment's tiles begin. Pair p is row p/group, and head
	// p%group of a key head's group.
	queries, wide []int32
	// keys holds, for each segment, the tiles of the path that it ends: the first row of
	// one whose 64 rows follow each other, else the complement of its number in lists.
	keys []int32
	// lists [.][64] are the rows of the other tiles by position, -1 where the path has ended.
	lists []int32
	// ends [N] is where the rows that see a row end: behind the last descendant of its segment.
	ends []int32

	first       []int32    // of each segment: where in keys its tiles begin
	segmentEnds []int32    // of each segment: where its last descendant ends
	cut         [][4]int32 // queries as they are sorted
}

// build makes the tables of a tree, for a number of query heads to a key head. The memory of
// earlier tables is used again.
func (t *tiles) build(tree *engine.Tree, group int) {
	t.keys, t.lists, t.first = t.keys[:0], t.lists[:0], t.first[:0]
	for s := range tree.Start {
		t.cutKeys(tree, s)
	}
	t.queries = t.cutQueries(t.queries[:0], tree, int32(group), tileLen)
	t.wide = t.cutQueries(t.wide[:0], tree, int32(group), wideLen)
	t.findEnds(tree)
}

// cutKeys appends the key tiles of segment s: its parent's full ones, then its own, of
// which the first may begin with rows of the parent's last.
func (t *tiles) cutKeys(tree *engine.Tree, s int) {
	t.first = append(t.first, int32(len(t.keys)))
	pos, start, end := tree.Pos[s], tree.Start[s], tree.Pos[s]+tree.Len[s]
	var above []int32 // the tiles of the parent
	if p := tree.Parent[s]; p >= 0 {
		above = t.keys[t.first[p]:]
		t.keys = append(t.keys, above[:pos/tileLen]...)
	}
	for from := pos / tileLen * tileLen; from < end; from += tileLen {
		if from >= pos && from+tileLen <= end {
			t.keys = append(t.keys, start+from-pos)
			continue
		}
		t.keys = append(t.keys, ^int32(len(t.lists)/tileLen))
		if from < pos {
			list := ^above[from/tileLen] * tileLen // the parent ends inside the tile, so it has a list
			t.lists = append(t.lists, t.lists[list:list+pos-from]...)
		}
		for p := max(from, pos); p < from+tileLen; p++ {
			row := int32(-1)
			if p < end {
				row = start + p - pos
			}
			t.lists = append(t.lists, row)
		}
	}
}

// cutQueries appends the tiles of queries, of so many pairs, those with most keys first: the
// blocks that run longest then begin first. The results do not depend on the order.
func (t *tiles) cutQueries(list []int32, tree *engine.Tree, group, pairs int32) []int32 {
	t.cut = t.cut[:0]
	for s, start := range tree.Start {
		end := (start + tree.Len[s]) * group
		for pair := start * group; pair < end; pair += pairs {
			t.cut = append(t.cut, [4]int32{pair, end, tree.Pos[s] - start, t.first[s]})
		}
	}
	last := func(q [4]int32) int32 { return (min(q[0]+pairs, q[1])-1)/group + q[2] }
	slices.SortStableFunc(t.cut, func(a, b [4]int32) int { return int(last(b)/tileLen - last(a)/tileLen) })
	for _, q := range t.cut {
		list = append(list, q[:]...)
	}
	return list
}

func (t *tiles) findEnds(tree *engine.Tree) {
	ends := append(t.segmentEnds[:0], tree.Start...)
	for s := len(ends) - 1; s >= 0; s-- {
		ends[s] = max(ends[s], tree.Start[s]+tree.Len[s])
		if p := tree.Parent[s]; p >= 0 {
			ends[p] = max(ends[p], ends[s])
		}
	}
	t.segmentEnds, t.ends = ends, t.ends[:0]
	for _, s := range tree.Segment {
		t.ends = append(t.ends, ends[s])
	}
}
