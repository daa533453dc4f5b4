package attention

import (
	"slices"
	"testing"

	"caper/kernels/treetest"
)

// The tables name every row once as a query, and give it the keys of its path.
func TestTiles(t *testing.T) {
	var x tiles
	for _, s := range treetest.Shapes {
		for _, group := range []int{1, 3, 4, 70} {
			tree := s.Tree()
			x.build(tree, group)
			for pairs, queries := range map[int][]int32{tileLen: x.queries, wideLen: x.wide} {
				seen := make([]int, tree.Rows()*group)
				for q := range slices.Chunk(queries, 4) {
					for pair := q[0]; pair < min(q[0]+int32(pairs), q[1]); pair++ {
						seen[pair]++
						row := pair / int32(group)
						if got := x.path(x.keys[q[3]:], row+q[2]); !slices.Equal(got, tree.Path(nil, row)) {
							t.Fatalf("%s: row %d sees %v, want %v", s.Name, row, got, tree.Path(nil, row))
						}
					}
				}
				if i := slices.IndexFunc(seen, func(n int) bool { return n != 1 }); i >= 0 {
					t.Errorf("%s, group %d: pair %d is in %d tiles", s.Name, group, i, seen[i])
				}
			}
			for i := range tree.Rows() {
				path := tree.Path(nil, int32(i))
				for j, end := range x.ends {
					if sees := j <= i && i < int(end); sees != slices.Contains(path, int32(j)) {
						t.Fatalf("%s: row %d sees row %d: %t", s.Name, i, j, sees)
					}
				}
			}
		}
	}
}

// path returns the rows at positions 0 to last of a segment's tiles.
func (t *tiles) path(keys []int32, last int32) (rows []int32) {
	for p := range last + 1 {
		if tile := keys[p/tileLen]; tile >= 0 {
			rows = append(rows, tile+p%tileLen)
		} else {
			rows = append(rows, t.lists[^tile*tileLen+p%tileLen])
		}
	}
	return rows
}
