package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Packing must give every sequence back, token by token, position by position,
// and must store a shared beginning once.
func TestPackRecoversSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seqs := rapid.SliceOfN(rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 8), 1, 12).Draw(t, "sequences")
		var tree Tree
		rows := tree.Pack(seqs)
		prefixes := map[string]bool{}
		for i, s := range seqs {
			if len(rows[i]) != len(s) {
				t.Fatalf("sequence %d has %d rows, want %d", i, len(rows[i]), len(s))
			}
			for p, r := range rows[i] {
				if tree.Tokens[r] != s[p] || tree.Position[r] != int32(p) {
					t.Fatalf("row %d holds token %d at %d, want %d at %d", r, tree.Tokens[r], tree.Position[r], s[p], p)
				}
				prefixes[string(i32bytes(s[:p+1]))] = true
				// The row's path upward is the sequence's own beginning.
				seg := tree.Segment[r]
				if p > 0 {
					prev := rows[i][p-1]
					if tree.Segment[prev] != seg && tree.Parent[seg] != tree.Segment[prev] {
						t.Fatalf("row %d does not continue row %d", r, prev)
					}
				}
			}
		}
		if tree.Rows() != len(prefixes) {
			t.Fatalf("%d rows for %d distinct prefixes", tree.Rows(), len(prefixes))
		}
		for s := range tree.Start {
			if int(tree.Parent[s]) >= s {
				t.Fatalf("segment %d has parent %d", s, tree.Parent[s])
			}
		}
	})
}

func i32bytes(s []int32) []byte {
	b := make([]byte, len(s))
	for i, x := range s {
		b[i] = byte(x)
	}
	return b
}

func TestRandomIsKeyed(t *testing.T) {
	a, b := Random(1, "init", 2, 3), Random(1, "init", 2, 3)
	x, y := []uint64{a.Uint64(), a.Uint64()}, []uint64{b.Uint64(), b.Uint64()}
	if !slices.Equal(x, y) {
		t.Error("the same key gives different numbers")
	}
	if c := Random(1, "init", 2, 4); c.Uint64() == x[0] {
		t.Error("another sample gives the same numbers")
	}
}
