package treetest

import (
	"math"
	"testing"

	"caper/engine"
	"caper/kernels/optest"
)

// Isolated checks on the CPU device that the results on a path depend on nothing
// else: with all other tokens set to NaN, be they of another branch or later in the
// same segment, they are the same bits as with the path alone in the batch, cut into
// the same segments.
func Isolated(t *testing.T, build func(*engine.Tree) optest.Case) {
	t.Helper()
	dev := engine.CPU(1)
	for _, s := range Shapes {
		tree := s.Tree()
		for g, start := range tree.Start {
			row := start + (tree.Len[g]-1)/2
			path := tree.Path(nil, row)
			among, alone := call{Case: build(tree)}, call{Case: build(pathTree(tree, row)), rows: path}
			among.draw()
			among.uses = make([]float64, tree.Rows())
			for i, in := range among.Inputs {
				v := among.values[i]
				if in.Rows == tree.Rows() {
					v = gather(v, in.Cols, path)
					among.values[i] = scatter(v, in.Cols, path, tree.Rows())
				}
				alone.values = append(alone.values, v)
			}
			among.run(dev)
			alone.run(dev)
			for k, want := range alone.outputs {
				got := gather(among.outputs[k], len(want)/len(path), path)
				for e := range want {
					if got[e] != want[e] {
						t.Fatalf("%s: result %d of the path to row %d: element %d is %g among others, %g alone", s.Name, k, row, e, got[e], want[e])
					}
				}
			}
		}
	}
}

// pathTree is the path to row, with the segments that it has in tree.
func pathTree(tree *engine.Tree, row int32) *engine.Tree {
	var s Shape
	for _, r := range tree.Path(nil, row) {
		if r == tree.Start[tree.Segment[r]] {
			s.Parents = append(s.Parents, len(s.Parents)-1)
			s.Lengths = append(s.Lengths, 0)
		}
		s.Lengths[len(s.Lengths)-1]++
	}
	return s.Tree()
}

// scatter places the rows of v, NaN elsewhere.
func scatter(v []float64, cols int, rows []int32, n int) []float64 {
	x := make([]float64, n*cols)
	for e := range x {
		x[e] = math.NaN()
	}
	for i, r := range rows {
		copy(x[int(r)*cols:int(r+1)*cols], v[i*cols:(i+1)*cols])
	}
	return x
}
