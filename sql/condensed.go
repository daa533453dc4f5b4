package sql

import "slices"

// IsCondensed reports that the node vanishes from the condensed tree, in which
// structural distance is counted (caper.md 1.4.5): names, aliases, and the
// wrappers that stand for parentheses, items and order terms.
func (n *Node) IsCondensed() bool {
	switch n.Kind {
	case Alias, Name, Item, OrderTerm, Subquery, Derived, JoinGroup, List:
		return true
	}
	return false
}

// CondensedDepth is the number of condensed edges from the root to n. The
// distance from n to an ancestor is the difference of their depths.
func (n *Node) CondensedDepth() int {
	depth := 0
	for ; n.Parent != nil; n = n.Parent {
		depth += n.edge()
	}
	return depth
}

// edge is the condensed length of the edge from n to its parent.
func (n *Node) edge() int {
	if n.IsCondensed() {
		return 0
	}
	return 1
}

// Reached is a node and its condensed distance.
type Reached struct {
	Node     *Node
	Distance int
}

// Upward lists the nodes that a fault at n propagates to, n first, by growing
// distance: its ancestors, and with dependency edges also what it depends on
// and their ancestors. A dependency edge has length 1; of several paths the
// shortest counts.
func Upward(n *Node, edges []Dependency) []Reached {
	found := []Reached{{n, 0}}
	pending := []Reached{{n, 0}}
	for len(pending) > 0 {
		// The shortest pending path comes first; paths are few and short.
		next := 0
		for i := range pending {
			if pending[i].Distance < pending[next].Distance {
				next = i
			}
		}
		at := pending[next]
		pending = slices.Delete(pending, next, next+1)
		reach := func(to *Node, distance int) {
			if !slices.ContainsFunc(found, func(r Reached) bool { return r.Node == to && r.Distance <= distance }) {
				found = append(found, Reached{to, distance})
				pending = append(pending, Reached{to, distance})
			}
		}
		if at.Node.Parent != nil {
			reach(at.Node.Parent, at.Distance+at.Node.edge())
		}
		for _, e := range edges {
			if e.From == at.Node {
				reach(e.To, at.Distance+1)
			}
		}
	}
	return shortest(found)
}

// shortest keeps the shortest path to each node, by growing distance.
func shortest(found []Reached) []Reached {
	slices.SortStableFunc(found, func(a, b Reached) int { return a.Distance - b.Distance })
	var kept []Reached
	for _, r := range found {
		if !slices.ContainsFunc(kept, func(k Reached) bool { return k.Node == r.Node }) {
			kept = append(kept, r)
		}
	}
	return kept
}
