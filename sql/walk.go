package sql

import "slices"

// Text is the part of src that n was parsed from.
func (n *Node) Text(src string) string { return src[n.Start:n.End] }

// Walk visits n and its descendants in pre-order. Where visit returns false,
// the node's descendants are left out.
func Walk(n *Node, visit func(*Node) bool) {
	if n == nil || !visit(n) {
		return
	}
	for _, c := range n.Children {
		Walk(c, visit)
	}
}

// Clone copies the subtree at n. The copy has no parent; Origin is kept.
func (n *Node) Clone() *Node {
	c := *n
	c.Parent = nil
	c.Children = make([]*Node, len(n.Children))
	for i, child := range n.Children {
		c.Children[i] = child.Clone()
		c.Children[i].Parent = &c
	}
	return &c
}

// Equal reports that two trees have the same kinds, qualifiers, values and
// shape. Spans and quoting do not count. Two nil trees are equal.
func Equal(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || a.Value != b.Value || a.Qualifier != b.Qualifier {
		return false
	}
	return slices.EqualFunc(a.Children, b.Children, Equal)
}

// Child is n's first child of the given kind, or nil.
func (n *Node) Child(kind Kind) *Node {
	for _, c := range n.Children {
		if c.Kind == kind {
			return c
		}
	}
	return nil
}

// Index is n's position among its parent's children, -1 for a root.
func (n *Node) Index() int {
	if n.Parent == nil {
		return -1
	}
	return slices.Index(n.Parent.Children, n)
}

// Ancestors lists the nodes above n, parent first, root last.
func (n *Node) Ancestors() []*Node {
	var path []*Node
	for p := n.Parent; p != nil; p = p.Parent {
		path = append(path, p)
	}
	return path
}

// IsBlock reports that n is a Select, Compound or Values node.
func (n *Node) IsBlock() bool {
	return n.Kind == Select || n.Kind == Compound || n.Kind == Values
}

// IsClause reports that n is a clause of a block, or a clause that stands alone.
// The OrderBy of a window or an aggregate call is none.
func (n *Node) IsClause() bool {
	switch n.Kind {
	case With, Projection, From, Where, GroupBy, Having, Window, OrderBy, Limit, SetOp:
		return n.Parent == nil || n.Parent.IsBlock()
	}
	return false
}

// Block is the innermost block that holds n, n itself if it is one, or nil.
func (n *Node) Block() *Node {
	for ; n != nil; n = n.Parent {
		if n.IsBlock() {
			return n
		}
	}
	return nil
}

// Clause is the innermost clause node that holds n, n itself if it is one, or
// nil for a block that stands in no clause.
func (n *Node) Clause() *Node {
	for ; n != nil; n = n.Parent {
		if n.IsClause() {
			return n
		}
	}
	return nil
}
