package sql

import (
	"slices"
	"sort"
)

// ClauseNodes lists the nodes of a statement's top-level clause units, in the
// order of Clauses: for a text that parses, the k-th node is the tree of the
// k-th unit, and its ClauseKind is the unit's kind. A Values block that stands
// in the first place is the node of its own SELECT unit.
//
// It takes parsed and canonical trees alike; the k-th nodes of both correspond.
func ClauseNodes(block *Node) []*Node {
	if block.Kind == Values {
		return []*Node{block}
	}
	var units []*Node
	for _, c := range block.Children {
		if c.IsBlock() { // the first operand of a compound
			units = append(units, ClauseNodes(c)...)
		} else {
			units = append(units, c)
		}
	}
	return units
}

// ClauseKind is the kind of the unit that a clause node makes, "" for other
// nodes.
func (n *Node) ClauseKind() ClauseKind {
	switch n.Kind {
	case With:
		return ClauseWith
	case Projection, Values:
		return ClauseSelect
	case From:
		return ClauseFrom
	case Where:
		return ClauseWhere
	case GroupBy:
		return ClauseGroupBy
	case Having:
		return ClauseHaving
	case Window:
		return ClauseWindow
	case SetOp:
		return ClauseSetOp
	case OrderBy:
		return ClauseOrderBy
	case Limit:
		return ClauseLimit
	}
	return ""
}

// UnitAt is the index of the unit that holds the byte at offset, -1 if none
// does. Units must be in textual order, as Clauses gives them.
func UnitAt(units []Clause, offset int) int {
	i := sort.Search(len(units), func(i int) bool { return units[i].End > offset })
	if i == len(units) || units[i].Start > offset {
		return -1
	}
	return i
}

// Rank is a clause kind's place in the order in which clauses are written: where
// a missing clause would stand. Unknown kinds come last.
func (k ClauseKind) Rank() int {
	order := []ClauseKind{
		ClauseWith, ClauseSelect, ClauseFrom, ClauseWhere, ClauseGroupBy, ClauseHaving,
		ClauseWindow, ClauseSetOp, ClauseOrderBy, ClauseLimit, ClauseEnd,
	}
	if i := slices.Index(order, k); i >= 0 {
		return i
	}
	return len(order)
}
