package tokenizer

// chain is a piece under merging as a doubly linked list of symbols, with the
// possible merges in a heap. It makes a piece of n bytes cost n log n, so that a
// megabyte without a space is no attack.
type chain struct {
	links []link
	queue queue[candidate]
}

// link is one symbol. One that went into its left neighbour has id -1; there is
// none before or after place -1.
type link struct{ id, previous, next int32 }

// candidate is a merge of the symbol at a place with the next one. It is stale
// when either has changed since.
type candidate struct{ rank, at int32 }

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

// mergeLong does what merge does.
func (t *mergeTable) mergeLong(symbols []int32, s *scratch) []int32 {
	c := &s.chain
	c.links, c.queue = c.links[:0], c.queue[:0]
	for i, id := range symbols {
		c.links = append(c.links, link{id, int32(i) - 1, int32(i) + 1})
	}
	c.links[len(symbols)-1].next = -1
	for i := range c.links {
		c.offer(t, int32(i))
	}
	for len(c.queue) > 0 {
		best := c.queue.pop()
		if c.rankAt(t, best.at) != best.rank {
			continue
		}
		l := &c.links[best.at]
		right := &c.links[l.next]
		l.id, l.next, right.id = t.ids[best.rank], right.next, -1
		if l.next >= 0 {
			c.links[l.next].previous = best.at
		}
		c.offer(t, l.previous)
		c.offer(t, best.at)
	}
	symbols = symbols[:0]
	for i := int32(0); i >= 0; i = c.links[i].next {
		symbols = append(symbols, c.links[i].id)
	}
	return symbols
}

// offer queues the merge at a place, if there is one.
func (c *chain) offer(t *mergeTable, at int32) {
	if rank := c.rankAt(t, at); rank != noRank {
		c.queue.push(candidate{rank, at})
	}
}

// rankAt returns the rank of the symbol at a place with the next one.
func (c *chain) rankAt(t *mergeTable, at int32) int32 {
	if at < 0 || c.links[at].id < 0 || c.links[at].next < 0 {
		return noRank
	}
	return t.rank(pair{c.links[at].id, c.links[c.links[at].next].id})
}
