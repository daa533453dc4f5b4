package exactmatch

import (
	"fmt"
	"strconv"
	"strings"
)

// printer writes the parts of a query down so that two are equal exactly when their
// texts are.
type printer struct {
	quirks Quirks
	names  map[string]string // of columns that foreign keys merge
	// nested is a query in a condition: its columns are not merged, and DISTINCT
	// counts. In FROM also its values count.
	nested, inFrom bool
}

func tuple(parts ...string) string { return "(" + strings.Join(parts, " ") + ")" }
func list(parts []string) string   { return "[" + strings.Join(parts, ", ") + "]" }

func (p printer) name(column string) string {
	if merged, ok := p.names[column]; ok && !p.nested {
		return merged
	}
	return column
}

func (p printer) column(c Column) string {
	distinct := ""
	if c.Distinct && (p.nested || !p.quirks.has(DistinctDropped)) {
		distinct = "distinct"
	}
	return tuple(c.Aggregate, distinct, p.name(c.Name))
}

func (p printer) expr(e Expr) string {
	if !e.Binary {
		return p.column(e.Left)
	}
	return tuple(p.column(e.Left), e.Operator, p.column(e.Right))
}

func (p printer) item(i Item) string { return tuple(i.Aggregate, p.expr(i.Expr)) }

func (p printer) condition(c Condition) string {
	return tuple(strconv.FormatBool(c.Not), c.Operator, p.expr(c.Expr), p.value(c.Values[0]), p.value(c.Values[1]))
}

func (p printer) value(v *Value) string {
	switch {
	case v == nil:
		return ""
	case v.Query != nil:
		p.nested = true
		return p.query(v.Query)
	case p.quirks.has(ValuesDropped) && !p.inFrom:
		return ""
	case v.Column != nil:
		return p.column(*v.Column)
	case v.Text != "":
		return v.Text
	}
	return strconv.FormatFloat(v.Number, 'g', -1, 64)
}

func (p printer) word(w Word) string {
	if w.Condition != nil {
		return p.condition(*w.Condition)
	}
	return w.Text
}

// conditions are in their order.
func (p printer) conditions(c Conditions) string {
	var parts []string
	for i := range max(len(c.List), len(c.Words)) {
		if i < len(c.List) {
			parts = append(parts, p.condition(c.List[i]))
		}
		if i < len(c.Words) {
			parts = append(parts, p.word(c.Words[i]))
		}
	}
	return list(parts)
}

func (p printer) order(o *Order) string {
	if o == nil {
		return ""
	}
	var parts []string
	for i, e := range o.Items {
		parts = append(parts, p.expr(e))
		if !p.quirks.has(OneDirection) {
			parts = append(parts, strings.TrimPrefix(o.Directions[i], "asc"))
		}
	}
	if p.quirks.has(OneDirection) {
		parts = append(parts, o.Direction())
	}
	return list(parts)
}

func (p printer) table(t Table) string {
	if t.Query == nil {
		return t.Name
	}
	p.nested, p.inFrom = true, true
	return p.query(t.Query)
}

// query is a nested query: all of it, in its order.
func (p printer) query(q *Query) string {
	var items, tables, groups []string
	for _, i := range q.Select {
		items = append(items, p.item(i))
	}
	for _, t := range q.From.Tables {
		tables = append(tables, p.table(t))
	}
	for _, c := range q.GroupBy {
		groups = append(groups, p.column(c))
	}
	limit := q.Limit
	if limit != "" && p.quirks.has(NestedLimitDropped) {
		limit = "limit"
	}
	operand := ""
	if q.Operand != nil {
		operand = p.query(q.Operand)
	}
	return fmt.Sprintf("{%v %s %s %s where %s group %s having %s order %s %s %s %s}", q.Distinct, list(items), list(tables),
		p.conditions(q.From.On), p.conditions(q.Where), list(groups), p.conditions(q.Having), p.order(q.OrderBy), limit,
		q.SetOperator, operand)
}
