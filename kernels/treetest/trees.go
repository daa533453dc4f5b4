// Package treetest tests operators that run over packed prefix trees: it holds the
// trees to try, and checks an operator against finite differences, its CPU version
// against its specification, and a tree against the sequences packed in it.
package treetest

import "caper/engine"

// Shape is a tree to test on: segment s continues segment Parents[s] with Lengths[s]
// tokens.
type Shape struct {
	Name             string
	Parents, Lengths []int
}

// Small are trees for finite differences: few rows, every kind of branching, paths
// over several segments of one token.
var Small = []Shape{
	{"token", []int{-1}, []int{1}},
	{"sequence", []int{-1}, []int{5}},
	{"forest", []int{-1, -1, -1}, []int{3, 1, 4}},
	{"ladder", []int{-1, 0, 1, 2, 2, 1, 0, 0}, []int{2, 1, 1, 1, 3, 2, 1, 2}},
}

// Large adds lengths around a chunk of 64 rows, branches that start and end there,
// and a forest of trees of depth 4.
var Large = append(Small[:len(Small):len(Small)],
	Shape{"around a chunk", []int{-1, -1, -1, -1}, []int{63, 64, 65, 130}},
	Shape{"prompt", []int{-1, 0, 0, 0, 3, 3}, []int{70, 9, 33, 66, 5, 12}},
	Shape{"chunk borders", []int{-1, 0, 1, 1, 0, 4, 0, 6, 7}, []int{64, 1, 63, 64, 63, 1, 65, 1, 1}},
	Shape{"trees", []int{-1, 0, 1, 2, 2, 0, -1, 6, 7, 8, 8, 6}, []int{20, 1, 1, 1, 40, 7, 65, 1, 1, 3, 1, 30}},
)

// Tree builds the tree. Its token ids are without meaning.
func (s Shape) Tree() *engine.Tree {
	tree := new(engine.Tree)
	for i, p := range s.Parents {
		tree.AddSegment(p, make([]int32, s.Lengths[i]))
	}
	return tree
}

// paths returns the rows of the sequence that ends at each segment.
func paths(tree *engine.Tree) [][]int32 {
	var all [][]int32
	for s, start := range tree.Start {
		all = append(all, tree.Path(nil, start+tree.Len[s]-1))
	}
	return all
}
