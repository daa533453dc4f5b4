package optest

import "caper/engine"

// NamedTree is a packed prefix tree for tests of operators that look along paths.
type NamedTree struct {
	Name string
	Tree *engine.Tree
}

// Trees returns trees that have broken such operators before: one token; lengths
// on either side of a chunk of 64; depth 4 with segments of one token; forests;
// and branches that start in the middle of a chunk. Rows are at most a few hundred.
func Trees() []NamedTree {
	return []NamedTree{
		{"one token", Tree([2]int{-1, 1})},
		{"63", Tree([2]int{-1, 63})},
		{"64", Tree([2]int{-1, 64})},
		{"65", Tree([2]int{-1, 65})},
		{"forest", Tree([2]int{-1, 5}, [2]int{-1, 1}, [2]int{-1, 66})},
		{"chain of single tokens", Tree([2]int{-1, 1}, [2]int{0, 1}, [2]int{1, 1}, [2]int{2, 1}, [2]int{3, 1}, [2]int{4, 3})},
		{"depth 4, short", Tree([2]int{-1, 3}, [2]int{0, 1}, [2]int{1, 1}, [2]int{2, 1}, [2]int{2, 2}, [2]int{1, 4}, [2]int{0, 1}, [2]int{6, 2})},
		{"depth 4, chunk borders", Tree([2]int{-1, 63}, [2]int{0, 1}, [2]int{1, 64}, [2]int{2, 65}, [2]int{2, 1}, [2]int{1, 1}, [2]int{0, 65}, [2]int{6, 1}, [2]int{7, 2})},
		{"two prompts", Tree([2]int{-1, 70}, [2]int{0, 9}, [2]int{1, 5}, [2]int{1, 12}, [2]int{0, 33}, [2]int{-1, 64}, [2]int{5, 1}, [2]int{5, 63})},
	}
}

// Tree builds a tree from (parent, length) pairs in depth-first order. Its tokens
// are all different.
func Tree(segments ...[2]int) *engine.Tree {
	t := new(engine.Tree)
	next := int32(0)
	for _, s := range segments {
		tokens := make([]int32, s[1])
		for i := range tokens {
			tokens[i] = next
			next++
		}
		t.AddSegment(s[0], tokens)
	}
	return t
}

// Path returns the rows from the root to the end of a segment: the sequence that a
// token at its end sees.
func Path(t *engine.Tree, segment int) []int32 {
	var rows []int32
	if p := t.Parent[segment]; p >= 0 {
		rows = Path(t, int(p))
	}
	for i := range t.Len[segment] {
		rows = append(rows, t.Start[segment]+i)
	}
	return rows
}
