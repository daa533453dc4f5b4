package sql

import (
	"strings"

	"github.com/sqlc-dev/meyer/ast"
)

// operators gives the neutral kind and spelling of the grammar's binary
// operators.
var operators = map[ast.Operator]struct {
	kind  Kind
	value string
}{
	ast.OpOr: {Or, ""}, ast.OpAnd: {And, ""},
	ast.OpEq: {Compare, "="}, ast.OpNe: {Compare, "!="},
	ast.OpLt: {Compare, "<"}, ast.OpLe: {Compare, "<="},
	ast.OpGt: {Compare, ">"}, ast.OpGe: {Compare, ">="},
	ast.OpBitAnd: {Binary, "&"}, ast.OpBitOr: {Binary, "|"},
	ast.OpLShift: {Binary, "<<"}, ast.OpRShift: {Binary, ">>"},
	ast.OpAdd: {Binary, "+"}, ast.OpSub: {Binary, "-"},
	ast.OpMul: {Binary, "*"}, ast.OpDiv: {Binary, "/"}, ast.OpMod: {Binary, "%"},
	ast.OpConcat: {Binary, "||"}, ast.OpPtr: {Binary, "->"}, ast.OpPtr2: {Binary, "->>"},
}

// expr translates an expression. Parentheses vanish: the tree's shape says
// what they said.
func (t *translator) expr(e ast.Expr) *Node {
	for p, ok := e.(*ast.ParenExpr); ok; p, ok = e.(*ast.ParenExpr) {
		e = p.X
	}
	t.enter(e.Pos())
	defer t.leave()
	start, end := e.Pos(), e.End()
	switch e := e.(type) {
	case *ast.Ident:
		return t.identifier(e)
	case *ast.QualifiedRef:
		return t.qualified(e)
	case *ast.Star:
		n := t.node(Star, "", start, end)
		if e.Table != nil {
			n.Qualifier = t.qualifier(e.Table)
		}
		return n
	case *ast.Literal:
		return t.literal(e)
	case *ast.BindParam:
		if e.Kind == ast.ParamNumber && (e.Number < 1 || e.Number > maxParam) {
			t.fail(start, "variable number must be between ?1 and ?%d", maxParam)
		}
		return t.node(Param, e.Raw, start, end)
	case *ast.BinaryExpr:
		return t.binary(e)
	case *ast.UnaryExpr:
		if e.Op == ast.OpNot {
			return t.node(Not, "", start, end, t.expr(e.X))
		}
		return t.node(Unary, e.Op.String(), start, end, t.expr(e.X))
	case *ast.LikeExpr:
		n := t.node(Like, negated(e.Not, strings.ToUpper(e.Op.Name)), start, end, t.expr(e.X), t.expr(e.Y))
		if e.Escape != nil {
			n.add(t.expr(e.Escape))
		}
		return n
	case *ast.IsExpr:
		return t.is(e)
	case *ast.NullCheckExpr:
		value := "IS NOT NULL"
		if e.Test == ast.TestIsNull {
			value = "IS NULL"
		}
		return t.node(NullTest, value, start, end, t.expr(e.X))
	case *ast.BetweenExpr:
		return t.node(Between, negated(e.Not, "BETWEEN"), start, end, t.expr(e.X), t.expr(e.Lo), t.expr(e.Hi))
	case *ast.InExpr:
		return t.in(e)
	case *ast.ExistsExpr:
		return t.node(Exists, "", start, end, t.block(e.Select))
	case *ast.SubqueryExpr:
		return t.node(Subquery, "", start, end, t.block(e.Select))
	case *ast.VectorExpr:
		n := t.list(Row, "", e.List)
		n.Start, n.End = start, end
		return n
	case *ast.CaseExpr:
		return t.caseExpr(e)
	case *ast.CastExpr:
		return t.node(Cast, typeName(e.Type), start, end, t.expr(e.X))
	case *ast.CollateExpr:
		return t.node(Collate, strings.ToUpper(e.Name.Name), start, end, t.expr(e.X))
	case *ast.FuncCall:
		return t.call(e)
	}
	t.fail(start, "expression is not allowed in a query")
	return nil
}

// negated puts NOT before op.
func negated(not bool, op string) string {
	if not {
		return "NOT " + op
	}
	return op
}

// identifier translates a bare name: a column, or TRUE and FALSE, which SQLite
// reads as constants.
func (t *translator) identifier(id *ast.Ident) *Node {
	if id.Quote == ast.QuoteNone && (strings.EqualFold(id.Name, "true") || strings.EqualFold(id.Name, "false")) {
		return t.node(Constant, strings.ToUpper(id.Name), id.Pos(), id.End())
	}
	n := t.node(Column, id.Name, id.Pos(), id.End())
	n.DoubleQuoted = id.Quote == ast.QuoteDouble
	return n
}

// qualified translates table.column and database.table.column.
func (t *translator) qualified(e *ast.QualifiedRef) *Node {
	column := len(e.Parts) - 1
	n := t.node(Column, e.Parts[column].Name, e.Pos(), e.End())
	n.Qualifier = t.qualifier(e.Parts[column-1])
	if column == 2 {
		n.add(t.name(Name, e.Parts[0]))
	}
	return n
}

// qualifier is the name before a dot. SQLite lets it be empty; here that means
// that there is none.
func (t *translator) qualifier(name *ast.Ident) string {
	if name.Name == "" {
		t.fail(name.Pos(), "an empty name before a dot is not supported")
	}
	return name.Name
}

func (t *translator) literal(l *ast.Literal) *Node {
	switch l.Kind {
	case ast.LitNull:
		return t.node(Null, "", l.Pos(), l.End())
	case ast.LitInteger, ast.LitFloat:
		return t.node(Number, l.Raw, l.Pos(), l.End())
	case ast.LitString:
		return t.node(String, l.Value, l.Pos(), l.End())
	case ast.LitBlob:
		return t.node(Blob, l.Value, l.Pos(), l.End())
	}
	return t.node(Constant, strings.ToUpper(l.Value), l.Pos(), l.End())
}

func (t *translator) binary(e *ast.BinaryExpr) *Node {
	op := operators[e.Op]
	n := t.node(op.kind, op.value, e.Pos(), e.End())
	for _, side := range [2]ast.Expr{e.X, e.Y} {
		operand := t.expr(side)
		if operand.Kind == op.kind && (op.kind == And || op.kind == Or) {
			for _, c := range operand.Children {
				n.add(c)
			}
			continue
		}
		n.add(operand)
	}
	return n
}

func (t *translator) is(e *ast.IsExpr) *Node {
	value := "IS"
	if e.Not {
		value += " NOT"
	}
	if e.Distinct {
		value += " DISTINCT FROM"
	}
	x, y := t.expr(e.X), t.expr(e.Y)
	if y.Kind == Null && !e.Distinct {
		return t.node(NullTest, value+" NULL", e.Pos(), e.End(), x)
	}
	return t.node(Is, value, e.Pos(), e.End(), x, y)
}

// in translates IN. The elements of a list must have as many terms as the left
// side; SQLite takes a sub-query that is the only element for the operand itself.
func (t *translator) in(e *ast.InExpr) *Node {
	x, operand := t.expr(e.X), t.inOperand(e)
	if x.Kind == Row && operand.Kind == List {
		for _, element := range operand.Children {
			isOperand := element.Kind == Subquery && len(operand.Children) == 1
			if !isOperand && (element.Kind != Row || len(element.Children) != len(x.Children)) {
				t.fail(element.Start, "IN(...) element has another number of terms than its left side")
			}
		}
	}
	return t.node(In, negated(e.Not, "IN"), e.Pos(), e.End(), x, operand)
}

// inOperand translates the right side of IN.
func (t *translator) inOperand(e *ast.InExpr) *Node {
	switch {
	case e.Select != nil:
		b := t.block(e.Select)
		return t.node(Subquery, "", t.before(b.Start, 1), e.End(), b)
	case e.Table != nil && e.HasArgs:
		n := t.node(TableFunction, e.Table.Name.Name, e.Table.Pos(), e.End())
		for _, arg := range e.Args {
			n.add(t.expr(arg))
		}
		return n
	case e.Table != nil:
		return t.table(e.Table)
	case len(e.List) == 0:
		return t.node(List, "", t.before(e.End(), 2), e.End())
	}
	n := t.list(List, "", e.List)
	n.Start, n.End = t.before(n.Start, 1), e.End()
	return n
}

func (t *translator) caseExpr(e *ast.CaseExpr) *Node {
	n := t.node(Case, "", e.Pos(), e.End())
	if e.Operand != nil {
		n.add(t.expr(e.Operand))
	}
	for _, w := range e.Whens {
		n.add(t.node(When, "", w.Pos(), w.End(), t.expr(w.When), t.expr(w.Then)))
	}
	if e.Else != nil {
		n.add(t.keyworded(Else, 1, e.Else))
	}
	return n
}

// typeName prints a CAST's type in one spelling, e.g. DECIMAL(10,2).
func typeName(typ *ast.TypeName) string {
	if typ == nil {
		return ""
	}
	name := strings.ToUpper(typ.Name)
	if len(typ.Args) > 0 {
		name += "(" + strings.Join(typ.Args, ",") + ")"
	}
	return name
}

// aggregates are SQLite's aggregate functions. min and max aggregate only when
// they have one argument.
var aggregates = map[string]bool{
	"count": true, "sum": true, "avg": true, "total": true, "min": true, "max": true,
	"group_concat": true, "string_agg": true, "json_group_array": true, "json_group_object": true,
}

func (t *translator) call(e *ast.FuncCall) *Node {
	name := strings.ToLower(e.Name.Name)
	kind := Function
	if aggregates[name] && (len(e.Args) == 1 || name != "min" && name != "max") {
		kind = Aggregate
	}
	n := t.node(kind, name, e.Pos(), e.End())
	if e.Star {
		open := t.after(e.Name.End())
		n.add(t.node(Star, "", t.tokens[t.tokenAt(open)].Pos, t.after(open)))
	}
	for _, arg := range e.Args {
		n.add(t.expr(arg))
	}
	if e.Distinct {
		word := t.tokenAt(e.Name.End()) + 1
		n.add(t.node(Distinct, "", t.tokens[word].Pos, t.tokens[word].End))
	}
	if len(e.OrderBy) > 0 {
		n.add(t.orderBy(e.OrderBy))
	}
	if e.Filter != nil {
		filter := t.keyworded(Filter, 3, e.Filter)
		filter.End = t.after(filter.End)
		n.add(filter)
	}
	if e.Over != nil {
		if e.Distinct {
			t.fail(e.Pos(), "DISTINCT is not supported for window functions")
		}
		n.add(t.window(Over, e.Over))
	}
	return n
}
