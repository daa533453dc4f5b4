package solve

import (
	"strings"

	"caper/sql"
)

// draft is a copy of a candidate's tree that an operator changes. Names are looked up
// in the original; at gives a node's counterpart in the copy.
type draft struct {
	*Examined
	tree   *sql.Node
	copies map[*sql.Node]*sql.Node
}

func newDraft(x *Examined) *draft {
	d := &draft{Examined: x, tree: x.tree.Clone(), copies: map[*sql.Node]*sql.Node{}}
	d.pair(x.tree, d.tree)
	return d
}

func (d *draft) pair(n, copied *sql.Node) {
	d.copies[n] = copied
	for i, c := range n.Children {
		d.pair(c, copied.Children[i])
	}
}

func (d *draft) at(n *sql.Node) *sql.Node { return d.copies[n] }

// text is the changed query.
func (d *draft) text() string { return sql.Render(d.tree) }

// become makes n, wherever it stands, what m is.
func become(n, m *sql.Node) {
	parent := n.Parent
	*n = *m
	n.Parent = parent
	for _, c := range n.Children {
		c.Parent = n
	}
}

// node makes a node.
func node(kind sql.Kind, value string, children ...*sql.Node) *sql.Node {
	n := &sql.Node{Kind: kind, Value: value}
	for _, c := range children {
		n.Children = append(n.Children, c)
		c.Parent = n
	}
	return n
}

func column(qualifier, name string) *sql.Node {
	return &sql.Node{Kind: sql.Column, Qualifier: qualifier, Value: name}
}

// adopt adds a child in its place among the clauses of a block.
func adopt(block, clause *sql.Node, before ...sql.Kind) {
	clause.Parent = block
	at := len(block.Children)
	for i, c := range block.Children {
		for _, kind := range before {
			if c.Kind == kind && i < at {
				at = i
			}
		}
	}
	block.Children = append(block.Children[:at:at], append([]*sql.Node{clause}, block.Children[at:]...)...)
}

// afterWhere are the clauses that stand behind WHERE.
var afterWhere = []sql.Kind{sql.GroupBy, sql.Having, sql.Window, sql.OrderBy, sql.Limit}

// require adds a condition to a block's WHERE.
func require(block, condition *sql.Node) {
	where := block.Child(sql.Where)
	if where == nil {
		adopt(block, node(sql.Where, "", condition), afterWhere...)
		return
	}
	where.Children[0] = both(where.Children[0], condition)
	where.Children[0].Parent = where
}

// both joins two conditions by AND, in one chain.
func both(a, b *sql.Node) *sql.Node {
	var all []*sql.Node
	for _, c := range []*sql.Node{a, b} {
		if c.Kind == sql.And {
			all = append(all, c.Children...)
		} else {
			all = append(all, c)
		}
	}
	return node(sql.And, "", all...)
}

// conjuncts are the conditions that all have to hold.
func conjuncts(condition *sql.Node) []*sql.Node {
	if condition == nil {
		return nil
	}
	if condition.Kind == sql.And {
		return condition.Children
	}
	return []*sql.Node{condition}
}

// remove takes n out of its parent's children; a chain of one is its last link.
func remove(n *sql.Node) {
	parent, at := n.Parent, n.Index()
	parent.Children = append(parent.Children[:at:at], parent.Children[at+1:]...)
	if (parent.Kind == sql.And || parent.Kind == sql.Or) && len(parent.Children) == 1 {
		become(parent, parent.Children[0])
	}
}

// quoteName writes a name for SQL of our own.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText writes a text literal.
func quoteText(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
