package engine

import (
	"fmt"
	"slices"
)

// Tree is a packed prefix tree (design section 5): N tokens in one flat array, cut
// into segments in depth-first order. Sequences that start alike share the
// segments of their common beginning, so that it is computed once in every layer.
// Ordinary packing is a forest of roots; one sequence is one root.
type Tree struct {
	Tokens []int32 // [N]
	// Segments. Parent is -1 for a root and always smaller than the segment's own
	// index; Pos is the position of the segment's first token in its sequence,
	// Pos[parent] + Len[parent].
	Start, Len, Parent, Pos []int32
	// Segment and Position of each row (token), [N].
	Segment, Position []int32
	// Before is Previous of each row, and Sibling the next row of which that is the same, -1
	// where there is none, [N]. The first row behind r on any path, if there is one, is r + 1.
	Before, Sibling []int32

	lastBranch []int32 // by segment: the first row of the last segment that continues it, or -1

	paths  [][]int32 // what Pack returned since Reset, and memory for more
	packed int       // paths in use
	order  []int     // Pack's sequences, sorted
}

// Rows returns N, the number of tokens.
func (t *Tree) Rows() int { return len(t.Tokens) }

// Previous returns the row before row on its path, -1 at the start of a sequence.
// It is always smaller than row.
func (t *Tree) Previous(row int32) int32 {
	s := t.Segment[row]
	if row > t.Start[s] {
		return row - 1
	}
	if p := t.Parent[s]; p >= 0 {
		return t.Start[p] + t.Len[p] - 1
	}
	return -1
}

// Path appends to dst the rows of row's sequence from its first token to row
// itself: element p is the row at position p.
func (t *Tree) Path(dst []int32, row int32) []int32 {
	from := len(dst)
	for r := row; r >= 0; r = t.Previous(r) {
		dst = append(dst, r)
	}
	slices.Reverse(dst[from:])
	return dst
}

// AddSegment appends a segment of tokens below parent (-1 for a root) and returns
// its index. A segment must be added before any segment of a later sibling branch:
// depth-first order.
func (t *Tree) AddSegment(parent int, tokens []int32) int {
	s := len(t.Start)
	if parent >= s || parent < -1 {
		panic(fmt.Sprintf("engine: segment %d with parent %d", s, parent))
	}
	if len(tokens) == 0 {
		panic("engine: empty segment")
	}
	pos := int32(0)
	if parent >= 0 {
		pos = t.Pos[parent] + t.Len[parent]
	}
	t.Start = append(t.Start, int32(len(t.Tokens)))
	t.Len = append(t.Len, int32(len(tokens)))
	t.Parent = append(t.Parent, int32(parent))
	t.Pos = append(t.Pos, pos)
	t.join(s, parent)
	for i, id := range tokens {
		t.Tokens = append(t.Tokens, id)
		t.Segment = append(t.Segment, int32(s))
		t.Position = append(t.Position, pos+int32(i))
		t.Sibling = append(t.Sibling, -1)
		if i > 0 {
			t.Before = append(t.Before, t.Start[s]+int32(i)-1)
		}
	}
	return s
}

// join sets what comes before the first row of segment s, which is the next sibling of
// parent's last branch.
func (t *Tree) join(s, parent int) {
	t.lastBranch = append(t.lastBranch, -1)
	if parent < 0 {
		t.Before = append(t.Before, -1)
		return
	}
	t.Before = append(t.Before, t.Start[parent]+t.Len[parent]-1)
	if b := t.lastBranch[parent]; b >= 0 {
		t.Sibling[b] = t.Start[s]
	}
	t.lastBranch[parent] = t.Start[s]
}

// Reset empties the tree and keeps its memory.
func (t *Tree) Reset() {
	t.Tokens, t.Segment, t.Position = t.Tokens[:0], t.Segment[:0], t.Position[:0]
	t.Start, t.Len, t.Parent, t.Pos = t.Start[:0], t.Len[:0], t.Parent[:0], t.Pos[:0]
	t.Before, t.Sibling, t.lastBranch = t.Before[:0], t.Sibling[:0], t.lastBranch[:0]
	t.packed = 0
}

// Pack adds the sequences to the tree as one prefix tree (a forest when they do
// not all start alike) and returns, for each sequence, the row of each of its
// tokens. Equal sequences share all their rows. The rows are the tree's memory, valid
// until Reset.
func (t *Tree) Pack(sequences [][]int32) [][]int32 {
	for len(t.paths) < t.packed+len(sequences) {
		t.paths = append(t.paths, nil)
	}
	rows := t.paths[t.packed : t.packed+len(sequences)]
	t.packed += len(sequences)
	t.order = t.order[:0]
	for i, s := range sequences {
		rows[i] = slices.Grow(rows[i][:0], len(s))
		if len(s) > 0 {
			t.order = append(t.order, i)
		}
	}
	slices.SortStableFunc(t.order, func(a, b int) int { return slices.Compare(sequences[a], sequences[b]) })
	t.pack(sequences, t.order, 0, -1, rows)
	return rows
}

// pack adds the sequences named by order, sorted, all of which agree on their
// first depth tokens and continue below parent.
func (t *Tree) pack(sequences [][]int32, order []int, depth, parent int, rows [][]int32) {
	for len(order) > 0 {
		first := sequences[order[0]]
		if len(first) == depth { // ends at its parent: nothing to add
			order = order[1:]
			continue
		}
		n := 1
		for n < len(order) && sequences[order[n]][depth] == first[depth] {
			n++
		}
		group := order[:n]
		order = order[n:]
		last := sequences[group[n-1]]
		end := depth + 1
		for end < len(first) && end < len(last) && first[end] == last[end] {
			end++
		}
		s := t.AddSegment(parent, first[depth:end])
		for _, i := range group {
			for r := range int32(end - depth) {
				rows[i] = append(rows[i], t.Start[s]+r)
			}
		}
		t.pack(sequences, group, end, s, rows)
	}
}
