package annotate

import (
	"strings"

	"caper/sql"
)

// frameSwaps lists the words of a window's frame that take the place of others.
// Each is tried alone, at its last occurrence: where a frame has both bounds,
// that is its end.
var frameSwaps = [][2]string{
	{"ROWS", "RANGE"}, {"RANGE", "ROWS"}, {"GROUPS", "ROWS"},
	{"CURRENT ROW", "UNBOUNDED FOLLOWING"}, {"UNBOUNDED FOLLOWING", "CURRENT ROW"},
	{"UNBOUNDED PRECEDING", "1 PRECEDING"}, {"1 PRECEDING", "2 PRECEDING"}, {"1 FOLLOWING", "2 FOLLOWING"},
}

// changeWindow leaves a window's partition, order or frame out, or one key of
// several, turns its order round, and changes its frame.
func changeWindow(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	window := n.Parent
	if window == nil {
		return
	}
	switch {
	case window.Kind == sql.Over || window.Kind == sql.WindowDef:
		if n.Kind == sql.PartitionBy || n.Kind == sql.OrderBy || n.Kind == sql.Frame {
			propose(window, without(window, n.Index()))
		}
		if n.Kind == sql.Frame {
			changeFrame(n, propose)
			return
		}
		for i := range n.Children {
			if len(n.Children) > 1 {
				propose(n, without(n, i))
			}
		}
	case n.Kind == sql.OrderTerm && !window.IsClause():
		toggleDirection(nil, n, propose)
	}
}

func changeFrame(n *sql.Node, propose func(old, new *sql.Node)) {
	for _, swap := range frameSwaps {
		if at := strings.LastIndex(n.Value, swap[0]); at >= 0 {
			propose(n, relabelled(n, n.Value[:at]+swap[1]+n.Value[at+len(swap[0]):]))
		}
	}
}
