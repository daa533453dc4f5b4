package sql

import (
	"strings"

	"github.com/sqlc-dev/meyer/token"
)

// Render prints a tree as SQL on one line, keywords in upper case, names
// quoted and operands parenthesised only where they must be. Any subtree can
// be printed: a clause with its keyword, an expression alone. Parsing the text
// of a block gives an equal tree.
func Render(n *Node) string {
	if n == nil {
		return ""
	}
	var p printer
	p.node(n)
	return p.String()
}

// printer builds SQL text.
type printer struct {
	strings.Builder
}

func (p *printer) write(parts ...string) {
	for _, s := range parts {
		p.WriteString(s)
	}
}

// list prints nodes with a separator between them.
func (p *printer) list(nodes []*Node, separator string) {
	for i, n := range nodes {
		if i > 0 {
			p.write(separator)
		}
		p.node(n)
	}
}

// parenthesised prints nodes as a list in parentheses.
func (p *printer) parenthesised(nodes []*Node) {
	p.write("(")
	p.list(nodes, ", ")
	p.write(")")
}

// node prints any node; expressions go to their own function.
func (p *printer) node(n *Node) {
	switch n.Kind {
	case Select, Compound:
		p.list(n.Children, " ")
	case Values:
		p.write("VALUES ")
		p.list(n.Children, ", ")
	case With, Projection, From, Where, GroupBy, Having, Window, OrderBy, Limit, SetOp:
		p.clause(n)
	case CTE, Item, Table, TableFunction, Derived, JoinGroup, Join, On, Using, OrderTerm, Offset, WindowDef, PartitionBy:
		p.part(n)
	case Alias:
		p.write("AS ", quoteName(n.Value))
	case Name:
		p.write(quoteName(n.Value))
	case Frame:
		p.write(n.Value)
	default:
		p.expr(n)
	}
}

// clause prints a clause with its keyword.
func (p *printer) clause(n *Node) {
	switch n.Kind {
	case With:
		p.write("WITH ")
		if n.Value != "" {
			p.write(n.Value, " ")
		}
		p.list(n.Children, ", ")
	case Projection:
		p.write("SELECT ")
		if n.Value != "" {
			p.write(n.Value, " ")
		}
		p.list(n.Children, ", ")
	case From:
		p.write("FROM ")
		p.sources(n.Children)
	case Where:
		p.write("WHERE ")
		p.list(n.Children, " ")
	case GroupBy:
		p.write("GROUP BY ")
		p.list(n.Children, ", ")
	case Having:
		p.write("HAVING ")
		p.list(n.Children, " ")
	case Window:
		p.write("WINDOW ")
		p.list(n.Children, ", ")
	case OrderBy:
		p.write("ORDER BY ")
		p.list(n.Children, ", ")
	case Limit:
		p.write("LIMIT ")
		p.list(n.Children, " ")
	case SetOp:
		p.write(n.Value, " ")
		p.list(n.Children, " ")
	}
}

// sources prints a FROM list: joins set off by a space, comma joins by none.
func (p *printer) sources(nodes []*Node) {
	for i, n := range nodes {
		if i > 0 && n.Value != "," && n.Kind != Alias {
			p.write(" ")
		}
		p.node(n)
	}
}

// part prints what stands inside a clause and is no expression.
func (p *printer) part(n *Node) {
	switch n.Kind {
	case CTE:
		p.write(quoteName(n.Value))
		names, block := n.Children[:len(n.Children)-1], n.Children[len(n.Children)-1]
		if len(names) > 0 {
			p.parenthesised(names)
		}
		p.write(" AS (")
		p.node(block)
		p.write(")")
	case Item:
		p.list(n.Children, " ")
	case Table:
		if n.Qualifier != "" {
			p.write(quoteName(n.Qualifier), ".")
		}
		p.write(quoteName(n.Value))
		p.alias(n)
	case TableFunction:
		args := n.Children
		if alias := n.Child(Alias); alias != nil {
			args = args[:len(args)-1]
		}
		p.write(callName(n.Value))
		p.parenthesised(args)
		p.alias(n)
	case Derived:
		p.parenthesised(n.Children[:1])
		p.alias(n)
	case JoinGroup:
		sources := n.Children
		if n.Child(Alias) != nil {
			sources = sources[:len(sources)-1]
		}
		p.write("(")
		p.sources(sources)
		p.write(")")
		p.alias(n)
	case Join:
		p.write(n.Value, " ")
		p.list(n.Children, " ")
	case On:
		p.write("ON ")
		p.list(n.Children, " ")
	case Using:
		p.write("USING ")
		p.parenthesised(n.Children)
	case OrderTerm:
		p.list(n.Children, " ")
		if direction := strings.TrimPrefix(n.Value, "ASC"); direction != "" {
			p.write(" ", strings.TrimSpace(direction))
		}
	case Offset:
		p.write("OFFSET ")
		p.list(n.Children, " ")
	case WindowDef:
		p.write(quoteName(n.Value), " AS (")
		p.windowBody(n.Qualifier, n.Children)
		p.write(")")
	case PartitionBy:
		p.write("PARTITION BY ")
		p.list(n.Children, ", ")
	}
}

// alias prints the alias of a source, if it has one.
func (p *printer) alias(n *Node) {
	if a := n.Child(Alias); a != nil {
		p.write(" ")
		p.node(a)
	}
}

// windowBody prints what stands in the parentheses of a window: the inherited
// window, partition, order and frame.
func (p *printer) windowBody(base string, parts []*Node) {
	if base != "" {
		p.write(quoteName(base))
		if len(parts) > 0 {
			p.write(" ")
		}
	}
	p.list(parts, " ")
}

// quoteName puts a name in back quotes unless SQLite reads it bare as the same
// name: it must look like an identifier and be no keyword. Double quotes would
// do as well but for columns that do not exist, which they turn into strings.
func quoteName(name string) string {
	isConstant := strings.EqualFold(name, "true") || strings.EqualFold(name, "false")
	if isBareName(name) && token.Lookup(name) == token.ID && !isConstant {
		return name
	}
	return quoted(name, "`")
}

// callName is quoteName for the name of a function, where an open parenthesis
// follows and most keywords that can be names need no quotes (replace, like).
func callName(name string) string {
	switch kind := token.Lookup(name); kind {
	case token.CAST, token.RAISE, token.CTIME_KW:
		return quoteName(name)
	default:
		if token.CanFallback(kind) && isBareName(name) {
			return name
		}
		return quoteName(name)
	}
}

// quoted wraps s in the delimiter and doubles the delimiters inside.
func quoted(s, delimiter string) string {
	return delimiter + strings.ReplaceAll(s, delimiter, delimiter+delimiter) + delimiter
}

// isBareName reports that name has the form of an unquoted identifier.
func isBareName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
		if !letter && (i == 0 || c != '$' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}
