package engine

import (
	"math"
	"slices"
)

// Packer lays token sequences out as micro-batches, each a packed prefix tree of a
// limited size. What sequences begin with alike is found by sorting them: then
// neighbours share most, and a micro-batch is a stretch of the sorted order. Where one
// ends and the next begins, what the neighbours share is computed twice; the stretches
// are chosen so that this is least.
//
// Sequences that must stand in one tree, such as the two of a preference, are given as
// a group. Call Cut, then Next until it returns false. A Packer keeps its memory from
// one Cut to the next.
type Packer struct {
	// What Next made: the tree, the numbers of its groups, and for each of their
	// sequences, group after group, the row of each token.
	Tree   Tree
	Groups []int
	Rows   [][]int32

	groups [][][]int32
	sorted []int // groups, by the first of their sequences in the sorted order
	ends   []int // of the micro-batches in sorted that are still to come, last one first
	next   int   // of sorted: where the next micro-batch begins

	sequences [][]int32 // all, group after group; then those of a micro-batch
	byRank    []int     // all, sorted
	rank      []int     // of each
	shared    []int     // [r]: tokens that the sequences of ranks r-1 and r begin with alike
	first     []int     // of each group: its first sequence,
	least     []int     // and the least rank of its sequences
	held      []int     // ranks in a stretch, in order
	open      []int     // see stretches
	from      []int
}

// Sharing counts what packing saves.
type Sharing struct {
	Rows   int // of the trees: tokens that are computed
	Tokens int // of the sequences, each alone
}

// Ratio returns how many times as many tokens separate sequences would compute.
func (s Sharing) Ratio() float64 { return float64(s.Tokens) / float64(max(s.Rows, 1)) }

// Add counts the micro-batch that Next made.
func (s *Sharing) Add(p *Packer) {
	s.Rows += p.Tree.Rows()
	for _, rows := range p.Rows {
		s.Tokens += len(rows)
	}
}

// Cut takes groups of sequences, to be packed into trees of at most budget rows; a group
// that has more by itself gets a tree of its own. The groups must stay as they are
// until the last Next.
func (p *Packer) Cut(groups [][][]int32, budget int) {
	p.groups, p.next = groups, 0
	p.rankSequences()
	p.sortGroups()
	p.stretches(budget)
}

// Next makes the next micro-batch and reports whether there was one.
func (p *Packer) Next() bool {
	if len(p.ends) == 0 {
		return false
	}
	end := p.ends[len(p.ends)-1]
	p.ends = p.ends[:len(p.ends)-1]
	p.Groups, p.next = p.sorted[p.next:end], end
	p.sequences = p.sequences[:0]
	for _, g := range p.Groups {
		p.sequences = append(p.sequences, p.groups[g]...)
	}
	p.Tree.Reset()
	p.Rows = p.Tree.Pack(p.sequences)
	return true
}

// rankSequences sorts all sequences and measures what neighbours share.
func (p *Packer) rankSequences() {
	p.sequences, p.byRank, p.first = p.sequences[:0], p.byRank[:0], p.first[:0]
	for _, group := range p.groups {
		p.first = append(p.first, len(p.sequences))
		p.sequences = append(p.sequences, group...)
	}
	for i := range p.sequences {
		p.byRank = append(p.byRank, i)
	}
	slices.SortStableFunc(p.byRank, func(a, b int) int { return slices.Compare(p.sequences[a], p.sequences[b]) })
	p.rank, p.shared = slices.Grow(p.rank[:0], len(p.byRank))[:len(p.byRank)], p.shared[:0]
	for r, i := range p.byRank {
		p.rank[i] = r
		n := 0
		if r > 0 {
			n = common(p.sequences[p.byRank[r-1]], p.sequences[i])
		}
		p.shared = append(p.shared, n)
	}
}

// common returns how many tokens a and b begin with alike.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (p *Packer) sortGroups() {
	p.sorted, p.least = p.sorted[:0], p.least[:0]
	for g := range p.groups {
		least := math.MaxInt
		for _, r := range p.ranks(g) {
			least = min(least, r)
		}
		p.sorted, p.least = append(p.sorted, g), append(p.least, least)
	}
	slices.SortStableFunc(p.sorted, func(a, b int) int { return p.least[a] - p.least[b] })
}

// ranks returns the ranks of a group's sequences.
func (p *Packer) ranks(group int) []int {
	return p.rank[p.first[group]:][:len(p.groups[group])]
}

// stretches chooses the micro-batches. One costs the tokens that it repeats of the one
// before, and 1, so that of equal choices fewer trees win. open[i] is the least cost
// with a micro-batch that begins at sorted[i], and from[i] is where the one that ends
// there begins.
func (p *Packer) stretches(budget int) {
	p.open, p.from, p.held, p.ends = append(p.open[:0], 1), append(p.from[:0], 0), p.held[:0], p.ends[:0]
	rows, earliest := 0, 0
	for i, g := range p.sorted {
		rows += p.hold(g)
		for ; rows > budget && earliest < i; earliest++ {
			rows -= p.release(p.sorted[earliest])
		}
		from := earliest
		for k := earliest + 1; k <= i; k++ {
			if p.open[k] < p.open[from] {
				from = k
			}
		}
		cost := p.open[from] + 1
		if i+1 < len(p.sorted) {
			cost += p.between(p.least[g], p.least[p.sorted[i+1]])
		}
		p.open, p.from = append(p.open, cost), append(p.from, from)
	}
	for i := len(p.sorted); i > 0; i = p.from[i] {
		p.ends = append(p.ends, i)
	}
}

// hold adds a group's sequences to the stretch and returns the rows that they add.
func (p *Packer) hold(group int) (rows int) {
	for _, r := range p.ranks(group) {
		at, _ := slices.BinarySearch(p.held, r)
		rows += p.fresh(r, at)
		p.held = slices.Insert(p.held, at, r)
	}
	return rows
}

// release takes a group's sequences out of the stretch and returns the rows that go.
func (p *Packer) release(group int) (rows int) {
	for _, r := range p.ranks(group) {
		at, _ := slices.BinarySearch(p.held, r)
		p.held = slices.Delete(p.held, at, at+1)
		rows += p.fresh(r, at)
	}
	return rows
}

// fresh returns the tokens of the sequence of rank r that no sequence held shares, those
// below held[at] being of lower rank.
func (p *Packer) fresh(r, at int) int {
	shared := 0
	if at > 0 {
		shared = p.between(p.held[at-1], r)
	}
	if at < len(p.held) {
		shared = max(shared, p.between(r, p.held[at]))
	}
	return len(p.sequences[p.byRank[r]]) - shared
}

// between returns how many tokens the sequences of two ranks, a < b, begin with alike.
func (p *Packer) between(a, b int) int {
	n := math.MaxInt
	for r := a + 1; r <= b; r++ {
		n = min(n, p.shared[r])
	}
	return n
}
