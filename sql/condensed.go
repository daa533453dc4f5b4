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
	var settled []Reached
	pending := []Reached{{n, 0}}
	for len(pending) > 0 {
		nearest := 0 // paths are few and short: no heap needed
		for i := range pending {
			if pending[i].Distance < pending[nearest].Distance {
				nearest = i
			}
		}
		at := pending[nearest]
		pending = slices.Delete(pending, nearest, nearest+1)
		if slices.ContainsFunc(settled, func(r Reached) bool { return r.Node == at.Node }) {
			continue
		}
		settled = append(settled, at)
		if parent := at.Node.Parent; parent != nil {
			pending = append(pending, Reached{parent, at.Distance + at.Node.edge()})
		}
		for _, e := range edges {
			if e.From == at.Node {
				pending = append(pending, Reached{e.To, at.Distance + 1})
			}
		}
	}
	return settled
}
