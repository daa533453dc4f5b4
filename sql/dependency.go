package sql

import "strings"

// Dependency says that the meaning of From rests on To, a node outside its
// ancestors (caper.md 1.4.5, dependency edges).
type Dependency struct {
	From, To *Node
}

// Dependencies lists the dependency edges under the block n, in pre-order of
// From: a column to the source in FROM that binds it, and an expression in
// ORDER BY or HAVING to the projected expression or GROUP BY key that it names
// or repeats.
func Dependencies(n *Node, scopes *Scopes) []Dependency {
	var edges []Dependency
	Walk(n, func(n *Node) bool {
		if n.Kind == Column || n.Kind == Star && n.Qualifier != "" {
			b := scopes.Binding(n)
			switch b.Meaning {
			case MeansColumn:
				edges = append(edges, Dependency{n, b.Source.Node})
			case MeansOutput:
				edges = append(edges, Dependency{n, b.Expr})
			}
		}
		if clause := repeatingClause(n); clause != nil {
			if to := repeated(n, clause.Parent, scopes); to != nil {
				edges = append(edges, Dependency{n, to})
			}
		}
		return true
	})
	return edges
}

// repeatingClause is the ORDER BY or HAVING clause whose expression n is: an
// order term's expression, an operand or the whole of a HAVING condition that
// is no connective. It is nil for all other nodes.
func repeatingClause(n *Node) *Node {
	p := n.Parent
	if p == nil {
		return nil
	}
	switch p.Kind {
	case OrderTerm:
		if p.Parent.IsClause() {
			return p.Parent
		}
	case Compare, Between, In, Like, NullTest, Binary:
		for ; p != nil; p = p.Parent {
			switch p.Kind {
			case Having:
				return p
			case Compare, Between, In, Like, NullTest, Binary, And, Or, Not:
			default:
				return nil
			}
		}
	}
	return nil
}

// repeated finds the projected expression or GROUP BY key of a block that n
// repeats, nil if there is none. Literals repeat nothing; a position in ORDER BY
// does.
func repeated(n, block *Node, scopes *Scopes) *Node {
	switch n.Kind {
	case Number:
		if n.Parent.Kind == OrderTerm {
			return positional(n)
		}
		return nil
	case String, Blob, Null, Constant, Param:
		return nil
	}
	if block.Kind == Compound {
		block = block.operands()[0]
	}
	if projection := block.Child(Projection); projection != nil {
		for _, item := range projection.Children {
			if expr := item.Children[0]; scopes.Same(n, expr) {
				return expr
			}
		}
	}
	if group := block.Child(GroupBy); group != nil {
		for _, key := range group.Children {
			if scopes.Same(n, key) {
				return key
			}
		}
	}
	return nil
}

// Same reports that two expressions of one statement are equal when names are
// taken for what they mean.
func (s *Scopes) Same(a, b *Node) bool {
	if a.Kind != b.Kind || len(a.Children) != len(b.Children) {
		return false
	}
	if a.Kind == Column {
		x, y := s.Binding(a), s.Binding(b)
		if x.Meaning != y.Meaning || x.Source != y.Source || x.Column != y.Column || x.Expr != y.Expr {
			return false
		}
		return x.Meaning != MeansNothing && x.Column >= 0 || strings.EqualFold(a.Value, b.Value)
	}
	if a.Value != b.Value || a.Qualifier != b.Qualifier {
		return false
	}
	for i := range a.Children {
		if !s.Same(a.Children[i], b.Children[i]) {
			return false
		}
	}
	return true
}
