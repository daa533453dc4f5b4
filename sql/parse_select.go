package sql

import (
	"slices"
	"strings"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/token"
)

// block translates a statement or sub-query.
func (t *translator) block(s *ast.SelectStmt) *Node {
	t.enter(s.Pos())
	defer t.leave()
	with := t.with(s.With)
	first, tail := t.core(s.Cores[0])
	if first.Kind == Select && len(s.Ops) == 0 {
		first.adoptFirst(with)
		first.adopt(tail...)
		return first
	}
	if with == nil && len(s.Ops) == 0 {
		return first
	}
	if len(s.Ops) >= maxOperands {
		t.fail(first.Start, "more than %d operands in a compound SELECT", maxOperands)
	}
	b := t.node(Compound, "", first.Start, first.End, first)
	b.adoptFirst(with)
	for i, op := range s.Ops {
		if len(tail) > 0 {
			t.fail(tail[0].Start, "%s before a set operator", tail[0].ClauseKind())
		}
		var operand *Node
		operand, tail = t.core(s.Cores[i+1])
		value := op.Op
		if op.All {
			value += " ALL"
		}
		b.adopt(t.node(SetOp, value, op.Pos(), operand.End, operand))
	}
	b.adopt(tail...)
	return b
}

// adoptFirst puts a clause in front of a block's others; nil is skipped.
func (n *Node) adoptFirst(clause *Node) {
	if clause != nil {
		clause.Parent = n
		n.Children = slices.Insert(n.Children, 0, clause)
		n.Start = clause.Start
	}
}

// adopt puts clauses behind a block's others.
func (n *Node) adopt(clauses ...*Node) {
	for _, c := range clauses {
		n.add(c)
		n.End = c.End
	}
}

// with translates a WITH clause, nil for none.
func (t *translator) with(w *ast.With) *Node {
	if w == nil {
		return nil
	}
	value, keywords := "", 1
	if w.Recursive {
		value, keywords = "RECURSIVE", 2
	}
	last := w.CTEs[len(w.CTEs)-1]
	n := t.node(With, value, t.before(w.CTEs[0].Pos(), keywords), last.End())
	for i, c := range w.CTEs {
		for _, other := range w.CTEs[:i] {
			if strings.EqualFold(other.Name.Name, c.Name.Name) {
				t.fail(c.Pos(), "duplicate WITH table name: %s", c.Name.Name)
			}
		}
		cte := t.node(CTE, c.Name.Name, c.Pos(), c.End())
		for _, column := range c.Columns {
			if next := t.tokens[t.tokenAt(column.End())]; next.Kind != token.COMMA && next.Kind != token.RP {
				t.fail(next.Pos, "syntax error after column name %q", column.Name) // the grammar takes COLLATE and ASC here
			}
			cte.add(t.name(Name, column))
		}
		cte.add(t.block(c.Select))
		n.add(cte)
	}
	return n
}

// core translates one operand without its ORDER BY and LIMIT, which SQLite's
// grammar hangs on the operand but which belong to the whole statement; they
// come back as tail.
func (t *translator) core(c ast.SelectCore) (operand *Node, tail []*Node) {
	switch c := c.(type) {
	case *ast.ValuesClause:
		return t.values(c), nil
	case *ast.SelectQuery:
		return t.selectCore(c)
	}
	t.fail(c.Pos(), "unknown kind of SELECT")
	return nil, nil
}

func (t *translator) values(c *ast.ValuesClause) *Node {
	n := t.node(Values, "", c.Pos(), c.End())
	for _, row := range c.Rows {
		r := t.list(Row, "", row)
		r.Start = t.before(row[0].Pos(), 1)
		r.End = t.after(r.End)
		n.add(r)
	}
	return n
}

func (t *translator) selectCore(c *ast.SelectQuery) (operand *Node, tail []*Node) {
	n := t.node(Select, "", c.Pos(), 0)
	n.add(t.projection(c))
	if len(c.From) > 0 {
		from := t.node(From, "", t.before(c.From[0].Pos(), 1), c.From[len(c.From)-1].End())
		t.sources(from, c.From)
		n.add(from)
	}
	if c.Where != nil {
		n.add(t.keyworded(Where, 1, c.Where))
	}
	if len(c.GroupBy) > 0 {
		n.add(t.keyworded(GroupBy, 2, c.GroupBy...))
	}
	if c.Having != nil {
		n.add(t.keyworded(Having, 1, c.Having))
	}
	if len(c.Windows) > 0 {
		window := t.node(Window, "", t.before(c.Windows[0].Pos(), 1), c.Windows[len(c.Windows)-1].End())
		for _, w := range c.Windows {
			window.add(t.window(WindowDef, w))
		}
		n.add(window)
	}
	n.End = n.Children[len(n.Children)-1].End
	if len(c.OrderBy) > 0 {
		tail = append(tail, t.orderBy(c.OrderBy))
	}
	if c.Limit != nil {
		tail = append(tail, t.limit(c.Limit))
	}
	return n, tail
}

func (t *translator) projection(c *ast.SelectQuery) *Node {
	value := ""
	switch c.Distinct {
	case ast.DistinctDistinct:
		value = "DISTINCT"
	case ast.DistinctAll:
		value = "ALL"
	}
	n := t.node(Projection, value, c.Pos(), c.Columns[len(c.Columns)-1].End())
	for _, column := range c.Columns {
		item := t.node(Item, "", column.Pos(), column.End(), t.expr(column.Expr))
		if column.Alias != nil {
			item.add(t.name(Alias, column.Alias))
		}
		n.add(item)
	}
	return n
}

// keyworded translates a clause of expressions that follows a keyword of the
// given number of tokens.
func (t *translator) keyworded(kind Kind, tokens int, exprs ...ast.Expr) *Node {
	n := t.list(kind, "", exprs)
	n.Start = t.before(n.Start, tokens)
	return n
}

// list translates expressions as the children of one node that spans them,
// their parentheses included.
func (t *translator) list(kind Kind, value string, exprs []ast.Expr) *Node {
	n := t.node(kind, value, exprs[0].Pos(), exprs[len(exprs)-1].End())
	n.Children = make([]*Node, 0, len(exprs))
	for _, e := range exprs {
		n.add(t.expr(e))
	}
	return n
}

func (t *translator) orderBy(terms []*ast.OrderingTerm) *Node {
	n := t.node(OrderBy, "", t.before(terms[0].Pos(), 2), terms[len(terms)-1].End())
	for _, term := range terms {
		value := "ASC"
		if term.Order == ast.SortDesc {
			value = "DESC"
		}
		switch term.Nulls {
		case ast.NullsFirst:
			value += " NULLS FIRST"
		case ast.NullsLast:
			value += " NULLS LAST"
		}
		n.add(t.node(OrderTerm, value, term.Pos(), term.End(), t.expr(term.Expr)))
	}
	return n
}

// limit translates LIMIT count, LIMIT count OFFSET n and LIMIT n, count alike.
func (t *translator) limit(l *ast.Limit) *Node {
	first := l.Count.Pos()
	if l.Comma {
		first = l.Offset.Pos()
	}
	n := t.node(Limit, "", t.before(first, 1), l.End(), t.expr(l.Count))
	if l.Offset != nil {
		offset := t.node(Offset, "", l.Offset.Pos(), l.Offset.End(), t.expr(l.Offset))
		if !l.Comma {
			offset.Start = t.before(offset.Start, 1)
		}
		n.add(offset)
	}
	return n
}

// sources adds a FROM list to parent. A parenthesised list in first place
// without alias joins nothing but itself and is spliced in.
func (t *translator) sources(parent *Node, refs []*ast.TableRef) {
	for i, ref := range refs {
		if i == 0 && len(ref.List) > 0 && ref.Alias == nil {
			t.enter(ref.Pos())
			t.joined(ref)
			t.sources(parent, ref.List)
			t.leave()
			continue
		}
		source := t.source(ref)
		if i == 0 {
			parent.add(source)
			continue
		}
		parent.add(t.join(ref, source))
	}
	if len(parent.Children) > maxSources {
		t.fail(parent.Start, "more than %d tables in a join", maxSources)
	}
}

// join wraps a further source with its join operator and condition.
func (t *translator) join(ref *ast.TableRef, source *Node) *Node {
	n := t.node(Join, t.joinKind(ref.Join), ref.Pos(), ref.End(), source)
	if ref.On != nil {
		n.add(t.keyworded(On, 1, ref.On))
	}
	if len(ref.Using) > 0 {
		using := t.node(Using, "", t.before(ref.Using[0].Pos(), 2), ref.End())
		for _, column := range ref.Using {
			using.add(t.name(Name, column))
		}
		n.add(using)
	}
	return n
}

// joinKind names the join without noise words. It refuses what SQLite refuses:
// unknown words, INNER with OUTER, and OUTER without a side.
func (t *translator) joinKind(op *ast.JoinOperator) string {
	if op.Type&ast.JoinComma != 0 {
		return ","
	}
	for _, word := range op.Words {
		switch strings.ToUpper(word) {
		case "JOIN", "NATURAL", "LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS":
		default:
			t.fail(op.Pos(), "unknown join type: %s", strings.Join(op.Words, " "))
		}
	}
	const sides = ast.JoinLeft | ast.JoinRight
	outer := op.Type&ast.JoinOuter != 0
	if outer && (op.Type&ast.JoinInner != 0 || op.Type&sides == 0) {
		t.fail(op.Pos(), "unknown join type: %s", strings.Join(op.Words, " "))
	}
	kind := "JOIN"
	switch {
	case op.Type&sides == sides:
		kind = "FULL JOIN"
	case op.Type&ast.JoinLeft != 0:
		kind = "LEFT JOIN"
	case op.Type&ast.JoinRight != 0:
		kind = "RIGHT JOIN"
	case op.Type&ast.JoinCross != 0:
		kind = "CROSS JOIN"
	}
	if op.Type&ast.JoinNatural != 0 {
		kind = "NATURAL " + kind
	}
	return kind
}

// source translates one table, table-valued function, sub-query or
// parenthesised join, without its join operator.
func (t *translator) source(ref *ast.TableRef) *Node {
	t.enter(ref.Pos())
	defer t.leave()
	t.joined(ref)
	start := ref.Pos()
	if ref.Join != nil {
		start = t.tokens[t.tokenAt(ref.Join.End())].Pos
	}
	var n *Node
	switch {
	case ref.Select != nil:
		n = t.node(Derived, "", start, t.after(ref.Select.End()), t.block(ref.Select))
	case len(ref.List) == 1:
		n = t.source(ref.List[0]) // SQLite drops the parentheses and the alias in them
		n.dropAlias()
	case len(ref.List) > 1:
		n = t.node(JoinGroup, "", start, t.after(ref.List[len(ref.List)-1].End()))
		t.sources(n, ref.List)
	case ref.HasArgs:
		n = t.node(TableFunction, ref.Name.Name.Name, start, t.afterCall(ref))
		for _, arg := range ref.Args {
			n.add(t.expr(arg))
		}
	default:
		n = t.table(ref.Name)
	}
	if ref.Alias != nil {
		n.add(t.name(Alias, ref.Alias))
		n.End = ref.Alias.End()
	}
	return n
}

// joined refuses a condition on a source that joins nothing.
func (t *translator) joined(ref *ast.TableRef) {
	if ref.Join == nil && (ref.On != nil || len(ref.Using) > 0) {
		t.fail(ref.Pos(), "a JOIN clause is required before ON")
	}
}

// afterCall is the end of the parenthesis that closes a table-valued
// function's arguments.
func (t *translator) afterCall(ref *ast.TableRef) int {
	if len(ref.Args) > 0 {
		return t.after(ref.Args[len(ref.Args)-1].End())
	}
	return t.after(t.after(ref.Name.End()))
}

func (t *translator) table(name *ast.QualifiedName) *Node {
	n := t.node(Table, name.Name.Name, name.Pos(), name.End())
	if name.Schema != nil {
		n.Qualifier = t.qualifier(name.Schema)
	}
	return n
}

// name translates an identifier that is no expression.
func (t *translator) name(kind Kind, id *ast.Ident) *Node {
	return t.node(kind, id.Name, id.Pos(), id.End())
}

// dropAlias removes the Alias child, which comes last, if there is one.
func (n *Node) dropAlias() {
	if last := len(n.Children) - 1; last >= 0 && n.Children[last].Kind == Alias {
		n.Children = n.Children[:last]
	}
}

// window translates OVER (...), OVER name and name AS (...).
func (t *translator) window(kind Kind, w *ast.WindowDef) *Node {
	n := t.node(kind, "", w.Pos(), w.End())
	if w.Name != nil {
		n.Value = w.Name.Name
		if w.Base != nil {
			n.Qualifier = w.Base.Name
		}
	} else if w.Base != nil {
		n.Value = w.Base.Name
	}
	if len(w.Partition) > 0 {
		n.add(t.keyworded(PartitionBy, 2, w.Partition...))
	}
	if len(w.OrderBy) > 0 {
		n.add(t.orderBy(w.OrderBy))
	}
	if w.Frame != ast.FrameNone {
		n.add(t.frame(w))
	}
	return n
}

// frame keeps a window frame as one leaf: nothing above looks inside it. A frame
// that ends before it starts is refused, as SQLite does.
func (t *translator) frame(w *ast.WindowDef) *Node {
	end := ast.BoundCurrentRow
	if w.EndBound != nil {
		end = w.EndBound.Type
	}
	if start := w.StartBound.Type; start >= ast.BoundCurrentRow && end < start {
		t.fail(w.StartBound.Pos(), "unsupported frame specification")
	}
	first := t.tokenAt(w.StartBound.Pos()) - 1
	if w.EndBound != nil {
		first-- // BETWEEN
	}
	last := t.tokenAt(w.End()) - 1 // the closing parenthesis
	words := make([]string, 0, last-first)
	for _, tok := range t.tokens[first:last] {
		word := tok.Text(t.src)
		if tok.Kind != token.STRING && tok.Kind != token.BLOB {
			word = strings.ToUpper(word)
		}
		words = append(words, word)
	}
	return t.node(Frame, strings.Join(words, " "), t.tokens[first].Pos, t.tokens[last-1].End)
}
