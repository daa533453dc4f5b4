package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawGroups draws groups of sequences that begin alike now and then.
func drawGroups(t *rapid.T, sequences int) [][][]int32 {
	sequence := rapid.SliceOfN(rapid.Int32Range(0, 2), 0, 8)
	return rapid.SliceOfN(rapid.SliceOfN(sequence, 1, sequences), 1, 12).Draw(t, "groups")
}

// prefixes counts the different beginnings of sequences: the rows of their tree.
func prefixes(groups ...[][]int32) int {
	seen := map[string]bool{}
	for _, group := range groups {
		for _, s := range group {
			for n := range s {
				seen[string(i32bytes(s[:n+1]))] = true
			}
		}
	}
	return len(seen)
}

// The micro-batches expand to exactly the sequences given, whole groups of them, keep to
// their budget, and the ratio is that of the tokens to the trees' rows.
func TestPackerKeepsEverySequence(t *testing.T) {
	var p Packer // its memory is used again and again
	rapid.Check(t, func(t *rapid.T) {
		groups := drawGroups(t, 3)
		budget := rapid.IntRange(1, 60).Draw(t, "budget")
		var sharing Sharing
		seen := make([]bool, len(groups))
		rows, tokens := 0, 0
		for p.Cut(groups, budget); p.Next(); sharing.Add(&p) {
			n := 0
			var inTree [][][]int32
			for _, g := range p.Groups {
				if seen[g] {
					t.Fatalf("group %d comes twice", g)
				}
				seen[g] = true
				inTree = append(inTree, groups[g])
				for _, s := range groups[g] {
					var got []int32
					for position, r := range p.Rows[n] {
						got = append(got, p.Tree.Tokens[r])
						if int(p.Tree.Position[r]) != position {
							t.Fatalf("row %d is at %d, want %d", r, p.Tree.Position[r], position)
						}
					}
					if !slices.Equal(got, s) {
						t.Fatalf("a sequence of group %d is %v, want %v", g, got, s)
					}
					n++
					tokens += len(s)
				}
			}
			if n != len(p.Rows) {
				t.Fatalf("%d sequences, want %d", len(p.Rows), n)
			}
			if p.Tree.Rows() > budget && len(p.Groups) > 1 {
				t.Fatalf("%d rows of %d groups, more than %d", p.Tree.Rows(), len(p.Groups), budget)
			}
			rows += prefixes(inTree...)
		}
		if slices.Contains(seen, false) {
			t.Fatalf("a group is missing: %v", seen)
		}
		if sharing != (Sharing{Rows: rows, Tokens: tokens}) {
			t.Fatalf("%+v, want %d rows, %d tokens", sharing, rows, tokens)
		}
	})
}

// No other cut of the sorted sequences has fewer rows, each tree counting one more.
func TestPackerRepeatsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := drawGroups(t, 1)
		budget := rapid.IntRange(1, 30).Draw(t, "budget")
		var p Packer
		cost := 0
		for p.Cut(groups, budget); p.Next(); {
			cost += p.Tree.Rows() + 1
		}
		sorted := slices.Clone(groups)
		slices.SortFunc(sorted, func(a, b [][]int32) int { return slices.Compare(a[0], b[0]) })
		best := []int{0}
		for i := range sorted {
			least := 1 << 30
			for from := range i + 1 {
				if n := prefixes(sorted[from : i+1]...); n <= budget || from == i {
					least = min(least, best[from]+n+1)
				}
			}
			best = append(best, least)
		}
		if want := best[len(sorted)]; cost != want {
			t.Fatalf("rows and trees come to %d, the least is %d", cost, want)
		}
	})
}

// Packing anew what is no larger than before allocates nothing.
func TestPackerKeepsItsMemory(t *testing.T) {
	r := Random(1, "packer", 0, 0)
	var groups [][][]int32
	for range 40 {
		prompt := make([]int32, 50)
		for i := range prompt {
			prompt[i] = r.Int32N(2)
		}
		groups = append(groups, [][]int32{append(slices.Clip(prompt), 1), append(slices.Clip(prompt), 2)})
	}
	var p Packer
	pack := func() {
		for p.Cut(groups, 300); p.Next(); {
		}
	}
	if n := testing.AllocsPerRun(20, pack); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
