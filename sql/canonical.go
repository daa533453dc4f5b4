package sql

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// Canonical returns a copy of the block n in the form in which queries are
// compared (caper.md 1.4.2): equal trees mean the same, whatever aliases, case,
// quotes or order of operands they were written with.
//
//   - Names are in lower case. "T.*" of the only source is "*". A column is qualified with its source's Instance
//     where that is clear, with one "^" before it for each block it stands
//     further out; a column of a sub-query or common table takes the name of
//     what it stands for, so no alias is left. Aliases and column lists vanish.
//   - Text in double quotes that names no column is a String.
//   - Items and terms lose their wrapping: a Projection's children are the
//     expressions. An alias or position in GROUP BY and ORDER BY is replaced by
//     the expression it stands for.
//   - ">" and ">=" are turned round; operands of =, !=, + and *, of AND and OR,
//     IN lists and GROUP BY keys are sorted.
//   - Numbers have one spelling; integers and reals stay apart, since 1 and 1.0
//     divide differently.
//   - Sources joined by inner joins are sorted by name, unless a star shows their
//     order, and each condition stands at the first join where all its sources
//     are there.
//
// One thing is not seen: where two columns are declared with different collations,
// SQLite compares by that of the left one.
//
// Every node keeps the span of the node it stands for, and Origin points to
// that node. The schema may be nil.
func Canonical(n *Node, schema *Schema) *Node {
	return CanonicalResolved(n, Resolve(n, schema))
}

// CanonicalResolved is Canonical for a tree whose names are resolved already.
func CanonicalResolved(n *Node, scopes *Scopes) *Node {
	if n == nil {
		return nil
	}
	c := canonicaliser{Scopes: scopes, outputs: make(map[*Node]*output), budget: maxCopies}
	return c.node(n)
}

type canonicaliser struct {
	*Scopes
	outputs map[*Node]*output // of projected expressions that were referred to
	budget  int               // nodes that may still be copied in the place of references
}

// output is the canonical form of a projected expression, made once however
// often it is referred to. All fields are empty while it is being made.
type output struct {
	tree *Node
	size int    // in nodes
	name string // of the column it makes outside its block
}

// An expression of at most maxSubstitute nodes is put in the place of its alias,
// up to maxCopies nodes a statement, so that the canonical form cannot grow out of
// proportion.
const (
	maxSubstitute = 64
	maxCopies     = 1 << 16
)

// node makes the canonical form of any node.
func (c *canonicaliser) node(n *Node) *Node {
	switch n.Kind {
	case Column, Star:
		return c.column(n)
	case Constant:
		if c.Binding(n).Meaning != MeansNothing {
			return c.column(n)
		}
	case Number:
		return stand(n, Number, canonicalNumber(n.Value))
	case Table, TableFunction, Derived:
		return c.source(n)
	case Item:
		return c.node(n.Children[0])
	case From:
		return c.from(n)
	case Join:
		return c.join(n)
	case CTE:
		return c.children(stand(n, CTE, ""), n.Children[len(n.Children)-1:])
	case GroupBy:
		out := c.terms(stand(n, GroupBy, ""), n.Children)
		slices.SortStableFunc(out.Children, compareNodes)
		return out
	case OrderTerm:
		return c.terms(stand(n, OrderTerm, canonicalOrder(n.Value)), n.Children)
	case Projection:
		return c.children(stand(n, Projection, strings.TrimPrefix(n.Value, "ALL")), n.Children)
	}
	out := c.children(stand(n, n.Kind, n.Value), n.Children)
	switch n.Kind {
	case Compare:
		c.orient(out)
	case And, Or, List:
		slices.SortStableFunc(out.Children, compareNodes)
	case Binary:
		if n.Value == "+" || n.Value == "*" {
			slices.SortStableFunc(out.Children, compareNodes)
		}
	}
	return out
}

// stand makes a node of the canonical tree that stands for origin.
func stand(origin *Node, kind Kind, value string) *Node {
	return &Node{Kind: kind, Value: value, Start: origin.Start, End: origin.End, Origin: origin}
}

// children adds the canonical forms of the given nodes to out; aliases and
// names, which only aliases refer to, are left out.
func (c *canonicaliser) children(out *Node, nodes []*Node) *Node {
	out.Children = make([]*Node, 0, len(nodes))
	for _, n := range nodes {
		if n.Kind != Alias && n.Kind != Name {
			out.add(c.node(n))
		}
	}
	return out
}

// orient turns > and >= round and sorts the operands of = and !=. Where both
// sides name a collation the left one counts, so they stay as they are.
func (c *canonicaliser) orient(compare *Node) {
	left, right := compare.Children[0], compare.Children[1]
	if hasCollation(left) && hasCollation(right) {
		return
	}
	swap := false
	switch compare.Value {
	case ">":
		compare.Value, swap = "<", true
	case ">=":
		compare.Value, swap = "<=", true
	case "=", "!=":
		swap = compareNodes(left, right) > 0
	}
	if swap {
		compare.Children[0], compare.Children[1] = right, left
	}
}

// hasCollation reports that an expression, sub-queries apart, names a collation.
func hasCollation(n *Node) (found bool) {
	Walk(n, func(n *Node) bool {
		found = found || n.Kind == Collate
		return !n.IsBlock()
	})
	return found
}

// column names a Column or Star by what it is bound to.
func (c *canonicaliser) column(n *Node) *Node {
	b := c.Binding(n)
	switch b.Meaning {
	case MeansString:
		return stand(n, String, n.Value)
	case MeansOutput:
		if b.Level > 0 { // its names mean something else from here
			out := stand(n, Column, c.output(b.Expr).name)
			out.Qualifier = strings.Repeat("^", b.Level)
			return out
		}
		return c.substitute(n, b.Expr)
	}
	out := stand(n, n.Kind, strings.ToLower(n.Value))
	if n.Kind == Star && b.Meaning == MeansColumn && len(c.Scope(n.Block()).Sources) == 1 {
		return out // all columns of the only source are all columns
	}
	if b.Meaning != MeansColumn || b.Ambiguous {
		if n.Qualifier != "" { // an error, and no other source's column
			out.Qualifier = "?" + strings.ToLower(n.Qualifier)
		}
		return out
	}
	out.Qualifier = strings.Repeat("^", b.Level) + b.Source.Instance
	if b.Coalesced {
		out.Qualifier += "|"
	}
	if b.Column >= 0 {
		out.Value = c.columnName(b.Source, b.Column)
	}
	return out
}

// columnName names column i of a source independently of aliases: that of a base
// table by itself, that of a sub-query or common table by what it stands for (a
// column's canonical name, or a hash of any other expression), that of several
// blocks or rows by its position.
func (c *canonicaliser) columnName(source *Source, i int) string {
	if source.Table != nil {
		return strings.ToLower(source.ColumnName(i))
	}
	if b := source.Block; b != nil && b.Kind != Select {
		return "#" + strconv.Itoa(i)
	}
	switch o := source.Columns[i]; {
	case o.Expr != nil:
		return c.output(o.Expr).name
	case o.Source != nil:
		return o.Source.Instance + "." + c.columnName(o.Source, o.Column)
	default:
		return strings.ToLower(o.Name)
	}
}

// output makes the canonical form of a projected expression.
func (c *canonicaliser) output(expr *Node) *output {
	if o, found := c.outputs[expr]; found {
		return o
	}
	o := &output{}
	c.outputs[expr] = o
	o.tree = c.node(expr)
	Walk(o.tree, func(*Node) bool { o.size++; return o.size <= maxSubstitute })
	o.name = o.tree.Qualifier + "." + o.tree.Value
	if o.tree.Kind != Column {
		hash := fnv.New64a()
		hash.Write([]byte(Render(o.tree)))
		o.name = "#" + strconv.FormatUint(hash.Sum64(), 36)
	}
	return o
}

// substitute puts a projected expression in the place of the reference n to it.
// All nodes of the copy stand for n.
func (c *canonicaliser) substitute(n, expr *Node) *Node {
	o := c.output(expr)
	if o.size == 0 || o.size > maxSubstitute || o.size > c.budget {
		return stand(n, Column, o.name)
	}
	c.budget -= o.size
	out := o.tree.Clone()
	Walk(out, func(d *Node) bool {
		d.Start, d.End, d.Origin = n.Start, n.End, n
		return true
	})
	return out
}

// terms adds GROUP BY keys or an ORDER BY term. A whole number there is the
// position of an output.
func (c *canonicaliser) terms(out *Node, nodes []*Node) *Node {
	for _, n := range nodes {
		if expr := positional(n); expr != nil {
			out.add(c.substitute(n, expr))
		} else {
			out.add(c.node(n))
		}
	}
	return out
}

// positional is the projected expression that a whole number in GROUP BY or
// ORDER BY stands for, or nil.
func positional(n *Node) *Node {
	if n.Kind != Number || n.Parent.Kind == OrderTerm && !n.Parent.Parent.IsClause() {
		return nil
	}
	b := n.Block()
	if b.Kind == Compound {
		b = b.operands()[0]
	}
	projection := b.Child(Projection)
	position, err := strconv.Atoi(strings.ReplaceAll(n.Value, "_", ""))
	if err != nil || projection == nil || position < 1 || position > len(projection.Children) {
		return nil
	}
	for _, item := range projection.Children[:position] {
		if item.Children[0].Kind == Star {
			return nil // the star hides how many columns come before
		}
	}
	return projection.Children[position-1].Children[0]
}

// source makes the canonical form of a source that is one. Of two that share a name,
// neither can be told apart by it: they are marked, for SQLite may object.
func (c *canonicaliser) source(n *Node) *Node {
	name := ""
	switch n.Kind {
	case Table:
		name = c.tableName(n)
	case TableFunction:
		name = strings.ToLower(n.Value)
	}
	if s := c.Source(n); s != nil && s.namesake {
		name += "?"
	}
	return c.children(stand(n, n.Kind, name), n.Children)
}

// tableName is the canonical name of a base table, in lower case, or of a common
// table, in upper case.
func (c *canonicaliser) tableName(n *Node) string {
	if s := c.Source(n); s != nil && s.Block != nil {
		name, _, _ := strings.Cut(s.Instance, "#")
		return strings.ToUpper(name)
	}
	return strings.ToLower(n.Value)
}

// canonicalOrder drops the placement of NULLs that is SQLite's default.
func canonicalOrder(value string) string {
	switch value {
	case "ASC NULLS FIRST":
		return "ASC"
	case "DESC NULLS LAST":
		return "DESC"
	}
	return value
}

// canonicalNumber gives integers in decimal and reals in shortest form, always
// with a point or exponent.
func canonicalNumber(text string) string {
	text = strings.ReplaceAll(text, "_", "")
	if integer, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(integer, 10)
	}
	if hex, found := strings.CutPrefix(strings.ToLower(text), "0x"); found {
		if bits, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return strconv.FormatInt(int64(bits), 10)
		}
	}
	if strings.Trim(text, "0123456789") == "" {
		return strings.TrimLeft(text, "0") // too large for an integer, unless a minus sign makes it the smallest
	}
	real, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	short := strconv.FormatFloat(real, 'g', -1, 64)
	if !strings.ContainsAny(short, ".e") {
		short += ".0"
	}
	return short
}

// compareNodes orders trees by kind, qualifier, value and children.
func compareNodes(a, b *Node) int {
	if order := cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Qualifier, b.Qualifier),
		cmp.Compare(a.Value, b.Value),
	); order != 0 {
		return order
	}
	return slices.CompareFunc(a.Children, b.Children, compareNodes)
}
