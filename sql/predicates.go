package sql

import (
	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/token"
)

// Unit is a stretch of a statement's text that can be right or wrong by itself,
// finer than a clause.
type Unit struct {
	Clause // the kind of the clause that it is part of, and its span
	// Node stands for the unit in the tree. For the first unit of a clause it is
	// the clause node, so that each node of the tree belongs to the nearest unit
	// node above it.
	Node *Node
	// Depth is the number of clauses around the unit: 0 in the outermost block.
	Depth int
}

// Predicates cuts the statement text, whose tree is block, into the smallest
// parts that mean something: each item of a projection, each joined source with
// its ON or USING, each conjunct of WHERE, HAVING and ON, each key of GROUP BY
// and ORDER BY, each table of WITH, each window, each set operator with its
// operand. VALUES, LIMIT and conditions joined by OR stay whole.
//
// A unit starts at the word or sign that opens it, be it a keyword, a comma, AND
// or a join operator, and ends where the next one starts. So the first part of a
// clause holds the clause's keyword, an ON its first conjunct, and what closes a
// parenthesis belongs to the unit before.
//
// The units of the outermost block come first, in textual order, and partition
// the text as Clauses does. Those of each inner block follow, and partition the
// block.
func Predicates(block *Node, text string) []Unit {
	p := predicates{tokens: lexer.Lex(text)}
	p.block(block, 0)
	clauses := Clauses(text)
	p.units[0].Start = 0
	for i := range p.units {
		if i+1 == len(p.units) || p.units[i+1].Depth > 0 {
			p.units[i].End = clauses[len(clauses)-1].End
			break
		}
	}
	return p.units
}

type predicates struct {
	tokens []token.Token
	units  []Unit
	kind   ClauseKind // of the clause being cut
	depth  int
}

// block cuts one block, then those inside it.
func (p *predicates) block(b *Node, depth int) {
	p.depth = depth
	first, clauses := len(p.units), ClauseNodes(b)
	for _, c := range clauses {
		p.clause(c)
	}
	for i := first; i+1 < len(p.units); i++ {
		p.units[i].End = p.units[i+1].Start
	}
	p.units[len(p.units)-1].End = b.End
	for _, c := range clauses {
		p.inside(c, depth+1)
	}
}

// inside cuts the blocks below n.
func (p *predicates) inside(n *Node, depth int) {
	for _, c := range n.Children {
		if c.IsBlock() {
			p.block(c, depth)
		} else {
			p.inside(c, depth)
		}
	}
}

// clause opens the units of one clause.
func (p *predicates) clause(c *Node) {
	p.kind = c.ClauseKind()
	p.open(c, c.Start)
	switch c.Kind {
	case With, Projection, GroupBy, Window, OrderBy:
		p.further(c.Children)
	case Where, Having:
		p.further(conjuncts(c.Children[0]))
	case From:
		p.joins(c)
	}
}

// joins opens a unit for each join below n and for each further conjunct of its
// condition.
func (p *predicates) joins(n *Node) {
	for _, c := range n.Children {
		switch c.Kind {
		case JoinGroup:
			p.joins(c)
		case Join:
			p.open(c, c.Start)
			p.joins(c)
		case On:
			p.further(conjuncts(c.Children[0]))
		}
	}
}

// further opens a unit for each part but the first, at the comma or AND in
// front of it.
func (p *predicates) further(parts []*Node) {
	for _, part := range parts[1:] {
		i := tokenAt(p.tokens, part.Start) - 1
		for p.tokens[i].Kind == token.LP {
			i--
		}
		p.open(part, p.tokens[i].Pos)
	}
}

func (p *predicates) open(n *Node, start int) {
	p.units = append(p.units, Unit{Clause{Kind: p.kind, Start: start}, n, p.depth})
}
