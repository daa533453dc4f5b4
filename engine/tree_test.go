package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What a tree keeps by row: the row before, the next one behind that, and that the first row
// behind any is the next row.
func TestTreeRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree Tree
		for range 2 { // the second time in memory that has been used
			tree.Reset()
			path := []int{-1}
			for range rapid.IntRange(1, 12).Draw(t, "segments") {
				depth := rapid.IntRange(1, len(path)).Draw(t, "depth")
				s := tree.AddSegment(path[depth-1], make([]int32, rapid.IntRange(1, 3).Draw(t, "length")))
				path = append(path[:depth], s)
			}
			behind := map[int32][]int32{}
			for r := range int32(tree.Rows()) {
				if p := tree.Previous(r); p != tree.Before[r] {
					t.Fatalf("row %d: Before %d, Previous %d", r, tree.Before[r], p)
				} else if p >= 0 {
					behind[p] = append(behind[p], r)
				}
			}
			for p, rows := range behind {
				var linked []int32
				for r := p + 1; r >= 0; r = tree.Sibling[r] {
					linked = append(linked, r)
				}
				if !slices.Equal(linked, rows) {
					t.Fatalf("behind row %d: %v by Sibling, want %v", p, linked, rows)
				}
			}
		}
	})
}
