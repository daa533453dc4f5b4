package sql

import "strings"

// Binding strength of SQLite's operators, weakest first, as its grammar
// declares them.
const (
	bindOr = iota + 1
	bindAnd
	bindNot
	bindCompare // = != IS IN LIKE BETWEEN and the null tests
	bindRelational
	bindBitwise
	bindAdd
	bindMultiply
	bindConcat
	bindCollate
	bindUnary
	bindPrimary
)

// bindOf gives the strength of a binary operator by its spelling.
var bindOf = map[string]int{
	"=": bindCompare, "!=": bindCompare,
	"<": bindRelational, "<=": bindRelational, ">": bindRelational, ">=": bindRelational,
	"&": bindBitwise, "|": bindBitwise, "<<": bindBitwise, ">>": bindBitwise,
	"+": bindAdd, "-": bindAdd,
	"*": bindMultiply, "/": bindMultiply, "%": bindMultiply,
	"||": bindConcat, "->": bindConcat, "->>": bindConcat,
}

// binding is the strength with which n's own operator holds its operands.
func binding(n *Node) int {
	switch n.Kind {
	case Or:
		return bindOr
	case And:
		return bindAnd
	case Not:
		return bindNot
	case Is, NullTest, Like, Between, In:
		return bindCompare
	case Compare, Binary:
		return bindOf[n.Value]
	case Collate:
		return bindCollate
	case Unary:
		return bindUnary
	}
	return bindPrimary
}

// operand prints n, in parentheses when it binds more weakly than least.
func (p *printer) operand(n *Node, least int) {
	if binding(n) < least {
		p.write("(")
		p.expr(n)
		p.write(")")
		return
	}
	p.expr(n)
}

// expr prints an expression.
func (p *printer) expr(n *Node) {
	switch n.Kind {
	case Or, And:
		for i, c := range n.Children {
			if i > 0 {
				p.write(" ", strings.ToUpper(string(n.Kind)), " ")
			}
			p.operand(c, binding(n)+1)
		}
	case Not:
		p.write("NOT ")
		p.operand(n.Children[0], bindNot+1)
	case Compare, Binary, Is:
		p.infix(n)
	case NullTest:
		p.operand(n.Children[0], bindCompare)
		p.write(" ", n.Value)
	case Like:
		p.infix(n)
		if len(n.Children) > 2 {
			p.write(" ESCAPE ")
			p.operand(n.Children[2], bindCompare+1)
		}
	case Between:
		p.infix(n)
		p.write(" AND ")
		p.operand(n.Children[2], bindCompare+1)
	case In:
		p.operand(n.Children[0], bindCompare)
		p.write(" ", n.Value, " ")
		p.node(n.Children[1])
	case Unary:
		p.write(n.Value)
		if n.Children[0].Kind == Unary {
			p.write(" ") // two minus signs would open a comment
		}
		p.operand(n.Children[0], bindUnary)
	case Collate:
		p.operand(n.Children[0], bindCollate)
		p.write(" COLLATE ", quoteName(n.Value))
	case Exists:
		p.write("EXISTS ")
		p.parenthesised(n.Children)
	case Subquery, List, Row:
		p.parenthesised(n.Children)
	case Cast:
		p.write("CAST(")
		p.expr(n.Children[0])
		p.write(" AS ", n.Value, ")")
	case Case, When, Else:
		p.caseExpr(n)
	case Function, Aggregate:
		p.call(n)
	case Distinct, Filter, Over:
		p.mark(n)
	default:
		p.leaf(n)
	}
}

// infix prints the first two operands around n's operator.
func (p *printer) infix(n *Node) {
	strength := binding(n)
	p.operand(n.Children[0], strength)
	p.write(" ", n.Value, " ")
	p.operand(n.Children[1], strength+1)
}

func (p *printer) caseExpr(n *Node) {
	switch n.Kind {
	case Case:
		p.write("CASE ")
		p.list(n.Children, " ")
		p.write(" END")
	case When:
		p.write("WHEN ")
		p.expr(n.Children[0])
		p.write(" THEN ")
		p.expr(n.Children[1])
	case Else:
		p.write("ELSE ")
		p.expr(n.Children[0])
	}
}

// call prints a function call: DISTINCT before the arguments and ORDER BY after
// them inside the parentheses, FILTER and OVER behind.
func (p *printer) call(n *Node) {
	p.write(callName(n.Value), "(")
	if n.Child(Distinct) != nil {
		p.write("DISTINCT ")
	}
	args := n.Arguments()
	p.list(args, ", ")
	if order := n.Child(OrderBy); order != nil {
		if len(args) > 0 {
			p.write(" ")
		}
		p.node(order)
	}
	p.write(")")
	for _, kind := range [2]Kind{Filter, Over} {
		if m := n.Child(kind); m != nil {
			p.write(" ")
			p.mark(m)
		}
	}
}

// mark prints DISTINCT, FILTER or OVER as it stands in a call.
func (p *printer) mark(n *Node) {
	switch n.Kind {
	case Distinct:
		p.write("DISTINCT")
	case Filter:
		p.write("FILTER (WHERE ")
		p.expr(n.Children[0])
		p.write(")")
	case Over:
		p.write("OVER ")
		if n.Value != "" && len(n.Children) == 0 {
			p.write(quoteName(n.Value))
			return
		}
		p.write("(")
		p.windowBody(n.Value, n.Children)
		p.write(")")
	}
}

// leaf prints a name or literal.
func (p *printer) leaf(n *Node) {
	switch n.Kind {
	case Column:
		for _, database := range n.Children {
			p.write(quoteName(database.Value), ".")
		}
		if n.Qualifier != "" {
			p.write(quoteName(n.Qualifier), ".")
		}
		if n.DoubleQuoted {
			p.write(quoted(n.Value, `"`))
			return
		}
		p.write(quoteName(n.Value))
	case Star:
		if n.Qualifier != "" {
			p.write(quoteName(n.Qualifier), ".")
		}
		p.write("*")
	case String:
		p.write(quoted(n.Value, "'"))
	case Null:
		p.write("NULL")
	default: // Number, Blob, Constant, Param
		p.write(n.Value)
	}
}

// Arguments lists a call's arguments, without the marks that follow them.
func (n *Node) Arguments() []*Node {
	for i, c := range n.Children {
		switch c.Kind {
		case Distinct, OrderBy, Filter, Over:
			return n.Children[:i]
		}
	}
	return n.Children
}
