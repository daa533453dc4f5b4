// Package treetest tests operators that look along the paths of a packed prefix
// tree: on trees that are easy to get wrong, and against the sequences packed in
// them.
package treetest

import (
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

// Shape is a tree to test on: segment s continues segment Parents[s] (-1 for none)
// with Lengths[s] tokens.
type Shape struct {
	Name             string
	Parents, Lengths []int
}

// Shapes are a single token; lengths on either side of a chunk of 64 tokens; paths
// over several segments of one token; depth 4 with branches of one token; branches
// that start and end at a chunk's border; and forests.
var Shapes = []Shape{
	{"token", []int{-1}, []int{1}},
	{"sequence", []int{-1}, []int{5}},
	{"chain", []int{-1, 0, 1, 2, 3, 4}, []int{1, 1, 1, 1, 1, 3}},
	{"ladder", []int{-1, 0, 1, 2, 2, 1, 0, 0}, []int{2, 1, 1, 1, 3, 2, 1, 2}},
	{"around a chunk", []int{-1, -1, -1, -1}, []int{63, 64, 65, 130}},
	{"prompt", []int{-1, 0, 0, 0, 3, 3}, []int{70, 9, 33, 66, 5, 12}},
	{"chunk borders", []int{-1, 0, 1, 1, 0, 4, 0, 6, 7}, []int{64, 1, 63, 64, 63, 1, 65, 1, 1}},
	{"trees", []int{-1, 0, 1, 2, 2, 0, -1, 6, 7, 8, 8, 6}, []int{20, 1, 1, 1, 40, 7, 65, 1, 1, 3, 1, 30}},
}

// Tree builds the tree. Its token ids are without meaning.
func (s Shape) Tree() *engine.Tree {
	tree := new(engine.Tree)
	for i, p := range s.Parents {
		tree.AddSegment(p, make([]int32, s.Lengths[i]))
	}
	return tree
}

// Prompt is a tree of the kind that training packs: a prompt of 1500 tokens and 24
// branches that make 2048 tokens together.
func Prompt() *engine.Tree {
	s := Shape{Parents: []int{-1}, Lengths: []int{1500}}
	for i := range 24 {
		s.Parents, s.Lengths = append(s.Parents, 0), append(s.Lengths, 22+i%2*2-i/20)
	}
	return s.Tree()
}

// Run puts the operator through optest on the shapes; build makes the case of a
// tree.
func Run(t *testing.T, shapes []Shape, build func(*engine.Tree) optest.Case) {
	t.Helper()
	for _, s := range shapes {
		c := build(s.Tree())
		c.Name = s.Name
		optest.Run(t, c)
	}
}

// Draw returns n elements for the named input of a case: fill of standard normal
// numbers.
func Draw(input string, n int, fill func(normal float64) float64) []float64 {
	rng := engine.Random(1, input, uint64(n), 0)
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(float32(fill(rng.NormFloat64())))
	}
	return x
}
