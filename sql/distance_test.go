package sql

import (
	"testing"

	"pgregory.net/rapid"
)

// drawTree makes a small ordered tree with few labels, so that ties and partial
// matches are common.
func drawTree(t *rapid.T, name string, nodes int) *Node {
	var grow func(budget int) (*Node, int)
	grow = func(budget int) (*Node, int) {
		n := &Node{
			Kind:  rapid.SampledFrom([]Kind{Column, Function}).Draw(t, name+"kind"),
			Value: rapid.SampledFrom([]string{"a", "b"}).Draw(t, name+"value"),
		}
		budget--
		for budget > 0 && rapid.Bool().Draw(t, name+"more") {
			var c *Node
			c, budget = grow(budget)
			n.add(c)
		}
		return n, budget
	}
	n, _ := grow(nodes)
	return n
}

// forestDistance is the definition of tree edit distance, memoised: the last
// roots of the two forests are deleted, inserted, or matched with each other.
type forestDistance map[[2]string]int

func (memo forestDistance) of(a, b []*Node) int {
	key := [2]string{forestKey(a), forestKey(b)}
	if d, ok := memo[key]; ok {
		return d
	}
	var d int
	switch {
	case len(a) == 0 && len(b) == 0:
	case len(a) == 0:
		rest, root := b[:len(b)-1], b[len(b)-1]
		d = memo.of(nil, join(rest, root.Children)) + 1
	case len(b) == 0:
		rest, root := a[:len(a)-1], a[len(a)-1]
		d = memo.of(join(rest, root.Children), nil) + 1
	default:
		restA, rootA := a[:len(a)-1], a[len(a)-1]
		restB, rootB := b[:len(b)-1], b[len(b)-1]
		label := 0
		if rootA.Kind != rootB.Kind {
			label = 2
		} else if rootA.Value != rootB.Value {
			label = 1
		}
		d = min(
			memo.of(join(restA, rootA.Children), b)+1,
			memo.of(a, join(restB, rootB.Children))+1,
			memo.of(restA, restB)+memo.of(rootA.Children, rootB.Children)+label,
		)
	}
	memo[key] = d
	return d
}

func join(a, b []*Node) []*Node { return append(append([]*Node{}, a...), b...) }

func forestKey(nodes []*Node) string {
	key := ""
	for _, n := range nodes {
		key += string(n.Kind[0]) + n.Value + "(" + forestKey(n.Children) + ")"
	}
	return key
}

func TestDistanceIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTree(t, "a", 7), drawTree(t, "b", 7)
		want := forestDistance{}.of([]*Node{a}, []*Node{b})
		got, script := Distance(a, b)
		if got != want {
			t.Fatalf("distance %s to %s is %d, want %d", forestKey([]*Node{a}), forestKey([]*Node{b}), got, want)
		}
		checkScript(t, a, b, got, script)
	})
}

func TestDistanceIsAMetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawTree(t, "a", 12), drawTree(t, "b", 12), drawTree(t, "c", 12)
		ab, _ := Distance(a, b)
		ba, _ := Distance(b, a)
		bc, _ := Distance(b, c)
		ac, _ := Distance(a, c)
		if aa, script := Distance(a, a.Clone()); aa != 0 || len(script) != 0 {
			t.Fatalf("distance to itself is %d", aa)
		}
		if ab == 0 && !Equal(a, b) {
			t.Fatal("distance 0 between different trees")
		}
		if ab != ba {
			t.Fatalf("distance %d one way and %d the other", ab, ba)
		}
		if ac > ab+bc {
			t.Fatalf("%d + %d is shorter than %d", ab, bc, ac)
		}
	})
}

// TestOutlineIsAScript checks what large trees get, on small ones.
func TestOutlineIsAScript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTree(t, "a", 12), drawTree(t, "b", 12)
		x, y := postorder(a), postorder(b)
		last := pair{int32(len(x.nodes) - 1), int32(len(y.nodes) - 1)}
		cost, script := writeScript(x, y, outline(x, y, last, nil))
		checkScript(t, a, b, cost, script)
		if best, _ := Distance(a, b); cost < best {
			t.Fatalf("outline costs %d, less than the distance %d", cost, best)
		}
		if Equal(a, b) && cost != 0 {
			t.Fatalf("equal trees cost %d", cost)
		}
	})
}

// checkScript checks that a script costs what it says and accounts for every
// node: the nodes it neither deletes nor inserts are as many on both sides.
func checkScript(t *rapid.T, a, b *Node, cost int, script []Edit) {
	sum, kept := 0, size(a)-size(b)
	for _, e := range script {
		switch e.Op {
		case Delete:
			sum, kept = sum+1, kept-1
			if e.A == nil || e.B != nil {
				t.Fatalf("deletion with A %v, B %v", e.A, e.B)
			}
		case Insert:
			sum, kept = sum+1, kept+1
			if e.B == nil {
				t.Fatal("insertion of nothing")
			}
			if e.A == nil && e.B != b {
				for p := e.B.Parent; p != nil; p = p.Parent {
					if !inserted(script, p) {
						t.Fatal("insertion without a place, below a node that has a counterpart")
					}
				}
			}
		case Relabel:
			sum++
			if e.A.Kind != e.B.Kind {
				sum++
			}
		}
	}
	if sum != cost || kept != 0 {
		t.Fatalf("script costs %d, not %d; %d nodes unaccounted for", sum, cost, kept)
	}
}

func inserted(script []Edit, n *Node) bool {
	for _, e := range script {
		if e.Op == Insert && e.B == n {
			return true
		}
	}
	return false
}

func size(n *Node) int {
	count := 0
	Walk(n, func(*Node) bool { count++; return true })
	return count
}

func TestDistanceOfEmptyAndHugeTrees(t *testing.T) {
	wide := func(n int) *Node {
		root := &Node{Kind: List}
		for range n {
			root.add(&Node{Kind: Number, Value: "1"})
		}
		return root
	}
	if cost, script := Distance(nil, wide(3)); cost != 4 || len(script) != 4 || script[0].A != nil {
		t.Errorf("nil to 4 nodes costs %d with %d edits", cost, len(script))
	}
	if cost, _ := Distance(wide(3), nil); cost != 4 {
		t.Errorf("4 nodes to nil costs %d", cost)
	}
	if cost, _ := Distance(wide(20000), wide(20001)); cost != 1 {
		t.Errorf("one more among 20000 equal children costs %d", cost)
	}
	changed := wide(20000)
	changed.Children[7000].Value, changed.Children[9000].Kind = "2", Column
	if cost, script := Distance(wide(20000), changed); cost != 3 || len(script) != 3 {
		t.Errorf("two changed children cost %d with %d edits", cost, len(script)) // deleted and inserted, or relabelled for 2
	}
	if cost, _ := Distance(nil, nil); cost != 0 {
		t.Errorf("nil to nil costs %d", cost)
	}
}
