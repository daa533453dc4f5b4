package sql

// Op is the kind of an edit.
type Op string

// The edits of a script: their costs are 1 for Insert and Delete; for Relabel,
// 1 when the kinds agree and 2 otherwise (caper.md 1.4.4, step 6).
const (
	Insert  Op = "insert"
	Delete  Op = "delete"
	Relabel Op = "relabel"
)

// Edit is one step of an edit script that turns tree a into tree b.
type Edit struct {
	Op Op
	// A is the node of a that is deleted or relabelled. For an insertion it is
	// the node under which B belongs: the counterpart in a of B's nearest
	// ancestor that has one, nil if none has.
	A *Node
	// B is the node of b that is inserted or whose label is taken; nil for a
	// deletion.
	B *Node
}

// maxCells bounds the table cells that Distance computes, and with them its time
// (some ten milliseconds) and memory. Clauses of real queries need a thousandth.
const maxCells = 1 << 22

// Distance is the cost of the cheapest script of edits that turns the ordered
// tree a into b, and one such script: first deletions and relabellings in
// pre-order of a, then insertions in pre-order of b. The algorithm is Zhang and Shasha's (SIAM Journal on Computing 18, 1989). It
// takes trees as they stand: make them canonical first, so that operands of
// commutative operators are in one order. A nil tree is empty.
//
// Of scripts with equal cost it takes one that relabels rather than deletes and
// inserts, so that few nodes are touched. Trees of a thousand nodes and more on
// both sides are compared from the top down instead, sibling by sibling: that
// script is valid, and so its cost an upper bound, and the time stays bounded.
func Distance(a, b *Node) (cost int, script []Edit) {
	if Equal(a, b) {
		return 0, nil
	}
	x, y := postorder(a), postorder(b)
	pairs := make([]pair, 0, len(x.nodes))
	if x.work()*y.work() <= maxCells {
		m := newMatcher(x, y)
		m.fill()
		pairs = m.trace(pairs)
	} else {
		last := pair{int32(len(x.nodes) - 1), int32(len(y.nodes) - 1)}
		pairs = outline(x, y, last, pairs)
	}
	return writeScript(x, y, pairs)
}

// tree holds a tree's nodes in post-order; all indexes are into nodes.
type tree struct {
	nodes    []*Node
	leftmost []int32 // the leftmost leaf below each node
	parent   []int32 // -1 for the root
	keyroots []int32 // the root and every node with a left sibling
	preorder []int32
}

func postorder(root *Node) *tree {
	t := &tree{}
	if root != nil {
		t.parent[t.visit(root)] = -1
		t.keyroots = append(t.keyroots, int32(len(t.nodes)-1))
	}
	return t
}

// visit appends the subtree at n and returns its index.
func (t *tree) visit(n *Node) int32 {
	slot := len(t.preorder)
	t.preorder = append(t.preorder, 0)
	first := int32(len(t.nodes)) // the leftmost leaf of n comes next
	children := make([]int32, len(n.Children))
	for k, c := range n.Children {
		children[k] = t.visit(c)
		if k > 0 {
			t.keyroots = append(t.keyroots, children[k])
		}
	}
	i := int32(len(t.nodes))
	t.nodes = append(t.nodes, n)
	t.leftmost = append(t.leftmost, first)
	t.parent = append(t.parent, -1)
	for _, c := range children {
		t.parent[c] = i
	}
	t.preorder[slot] = i
	return i
}

// work is the number of rows (or columns) that the tree's keyroots span.
func (t *tree) work() int {
	sum := 0
	for _, i := range t.keyroots {
		sum += int(i-t.leftmost[i]) + 1
	}
	return sum
}

// pair maps node i of one tree to node j of the other, both in post-order.
type pair struct{ i, j int32 }

// matcher holds the tables of the dynamic programme.
type matcher struct {
	x, y   *tree
	width  int     // of both tables: len(y.nodes)+1
	rename []int32 // cost of relabelling node i to node j
	whole  []int32 // distance between the subtrees at i and j
	forest []int32 // distance between the forests l(i)..i-1 and l(j)..j-1
}

func newMatcher(x, y *tree) *matcher {
	m := &matcher{x: x, y: y, width: len(y.nodes) + 1}
	cells := (len(x.nodes) + 1) * m.width
	tables := make([]int32, 3*cells)
	m.rename, m.whole, m.forest = tables[:cells], tables[cells:2*cells], tables[2*cells:]
	for i, a := range x.nodes {
		for j, b := range y.nodes {
			m.rename[i*m.width+j] = relabelCost(a, b)
		}
	}
	return m
}

func relabelCost(a, b *Node) int32 {
	switch {
	case a.Kind != b.Kind:
		return 2
	case a.Value != b.Value || a.Qualifier != b.Qualifier:
		return 1
	}
	return 0
}

// fill computes the distance of every pair of subtrees.
func (m *matcher) fill() {
	for _, i := range m.x.keyroots {
		for _, j := range m.y.keyroots {
			m.forests(int(i), int(j), true)
		}
	}
}

// forests fills the forest table for the subtrees at i and j: cell (p, q) is the
// distance between the forests of nodes l(i)..p-1 and l(j)..q-1. With store it
// also records the distances of the subtrees that start at the same leaves.
func (m *matcher) forests(i, j int, store bool) {
	li, lj := int(m.x.leftmost[i]), int(m.y.leftmost[j])
	at := func(p int) []int32 { return m.forest[p*m.width : (p+1)*m.width] }
	above := at(li)
	above[lj] = 0
	for q := lj; q <= j; q++ {
		above[q+1] = above[q] + 1
	}
	for p := li; p <= i; p++ {
		row := at(p + 1)
		lp := int(m.x.leftmost[p])
		before := at(lp) // the forest to the left of the subtree at p
		rename, whole := m.rename[p*m.width:], m.whole[p*m.width:]
		row[lj] = above[lj] + 1
		for q := lj; q <= j; q++ {
			best := min(above[q+1], row[q]) + 1
			lq := int(m.y.leftmost[q])
			if lp == li && lq == lj {
				best = min(best, above[q]+rename[q])
				if store {
					whole[q] = best
				}
			} else {
				best = min(best, before[lq]+whole[q])
			}
			row[q+1] = best
		}
		above = row
	}
}

// trace finds which nodes an optimal script keeps or relabels.
func (m *matcher) trace(pairs []pair) []pair {
	if len(m.x.nodes) == 0 || len(m.y.nodes) == 0 {
		return pairs
	}
	pending := []pair{{int32(len(m.x.nodes) - 1), int32(len(m.y.nodes) - 1)}}
	for len(pending) > 0 {
		top := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		m.forests(int(top.i), int(top.j), false)
		li, lj := m.x.leftmost[top.i], m.y.leftmost[top.j]
		cell := func(p, q int32) int32 { return m.forest[int(p)*m.width+int(q)] }
		for p, q := top.i+1, top.j+1; p > li && q > lj; {
			i, j, here := p-1, q-1, cell(p, q)
			at := int(i)*m.width + int(j)
			lp, lq := m.x.leftmost[i], m.y.leftmost[j]
			switch {
			case lp == li && lq == lj && here == cell(i, j)+m.rename[at]:
				pairs = append(pairs, pair{i, j})
				p, q = i, j
			case (lp != li || lq != lj) && here == cell(lp, lq)+m.whole[at]:
				pending = append(pending, pair{i, j})
				p, q = lp, lq
			case here == cell(i, q)+1:
				p = i
			default:
				q = j
			}
		}
	}
	return pairs
}

// outline pairs the nodes of two large trees that are easily seen to belong
// together: roots of one kind, their first and last children as far as they are
// equal, and those between in order.
func outline(x, y *tree, at pair, pairs []pair) []pair {
	if x.nodes[at.i].Kind != y.nodes[at.j].Kind {
		return pairs
	}
	pairs = append(pairs, at)
	a, b := x.children(at.i), y.children(at.j)
	for len(a) > 0 && len(b) > 0 && Equal(x.nodes[a[0]], y.nodes[b[0]]) {
		pairs = whole(x, pair{a[0], b[0]}, pairs)
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && Equal(x.nodes[a[len(a)-1]], y.nodes[b[len(b)-1]]) {
		pairs = whole(x, pair{a[len(a)-1], b[len(b)-1]}, pairs)
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for k := range min(len(a), len(b)) {
		pairs = outline(x, y, pair{a[k], b[k]}, pairs)
	}
	return pairs
}

// whole pairs all nodes of two equal subtrees; post-order numbers both alike.
func whole(x *tree, root pair, pairs []pair) []pair {
	for below := range root.i - x.leftmost[root.i] + 1 {
		pairs = append(pairs, pair{root.i - below, root.j - below})
	}
	return pairs
}

// children lists the children of node i, first to last.
func (t *tree) children(i int32) []int32 {
	list := make([]int32, len(t.nodes[i].Children))
	child := i - 1
	for k := len(list) - 1; k >= 0; k-- {
		list[k] = child
		child = t.leftmost[child] - 1
	}
	return list
}

// writeScript lists the edits that the mapping leaves: nodes of x in no pair,
// relabelled pairs, then nodes of y in no pair.
func writeScript(x, y *tree, pairs []pair) (cost int, script []Edit) {
	toY := make([]int32, len(x.nodes)) // 1 + index of the counterpart, 0 for none
	toX := make([]int32, len(y.nodes))
	for _, p := range pairs {
		toY[p.i], toX[p.j] = p.j+1, p.i+1
	}
	for _, i := range x.preorder {
		a := x.nodes[i]
		if toY[i] == 0 {
			script = append(script, Edit{Op: Delete, A: a})
			cost++
			continue
		}
		b := y.nodes[toY[i]-1]
		if c := relabelCost(a, b); c > 0 {
			script = append(script, Edit{Op: Relabel, A: a, B: b})
			cost += int(c)
		}
	}
	for _, j := range y.preorder {
		if toX[j] != 0 {
			continue
		}
		edit := Edit{Op: Insert, B: y.nodes[j]}
		for p := y.parent[j]; p >= 0; p = y.parent[p] {
			if toX[p] != 0 {
				edit.A = x.nodes[toX[p]-1]
				break
			}
		}
		script = append(script, edit)
		cost++
	}
	return cost, script
}
