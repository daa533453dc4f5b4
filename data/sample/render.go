package sample

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Style is how a writer prints a query. It changes the text and never the
// meaning. The zero Style is most gold queries' own.
type Style struct {
	// Aliases names joined tables T1, T2, ... as Spider's gold does; otherwise
	// their own names qualify columns.
	Aliases bool `json:"aliases,omitempty"`
	// Flip writes comparisons with a literal as 30 < age.
	Flip bool `json:"flip,omitempty"`
	// Inner writes INNER JOIN for JOIN.
	Inner bool `json:"inner,omitempty"`
	// Lower writes keywords in lower case.
	Lower bool `json:"lower,omitempty"`
}

// goldStyle draws the style of a gold query. Aliases say less than names to a
// model that reads SELECT before FROM, so they are the minority.
func goldStyle(r *rand.Rand) Style { return Style{Aliases: chance(r, 0.25)} }

// literal prints a value as a SQL literal.
func literal(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return "'" + strings.ReplaceAll(fmt.Sprint(v), "'", "''") + "'"
	}
}

// likePattern gives the operator and the pattern's text around the literal.
var likePattern = map[string]struct{ operator, before, after string }{
	"starts":   {"LIKE", "", "%"},
	"ends":     {"LIKE", "%", ""},
	"contains": {"LIKE", "%", "%"},
	"lacks":    {"NOT LIKE", "%", "%"},
}

// SQL renders q.
func (q *Query) SQL(style Style) string {
	return (&writer{style: style}).query(q)
}

// writer renders one query block; qualify gives the name before a column's dot,
// "" for a bare column.
type writer struct {
	style   Style
	qualify func(Column) string
}

func (w *writer) keyword(text string) string {
	if w.style.Lower {
		return strings.ToLower(text)
	}
	return text
}

// query renders q as a statement or the inside of parentheses.
func (w *writer) query(q *Query) string {
	inner := &writer{w.style, func(Column) string { return "" }}
	if len(q.Joins) > 0 {
		inner.qualify = q.qualifier(w.style)
	}
	return inner.block(q, "")
}

// qualifier names each table by its alias or itself. A table that FROM lacks
// (a fault) is called by its name.
func (q *Query) qualifier(style Style) func(Column) string {
	if !style.Aliases {
		return func(c Column) string { return c.Table }
	}
	names := map[string]string{}
	for i, t := range q.tables() {
		if names[t] == "" {
			names[t] = fmt.Sprintf("T%d", i+1)
		}
	}
	return func(c Column) string {
		if n := names[c.Table]; n != "" {
			return n
		}
		return c.Table
	}
}

// block renders the clauses of q; correlation is put before its conditions.
func (w *writer) block(q *Query, correlation string) string {
	var s strings.Builder
	clause := func(keyword string, parts ...string) {
		if s.Len() > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(w.keyword(keyword))
		for _, p := range parts {
			s.WriteByte(' ')
			s.WriteString(p)
		}
	}
	if q.With != nil {
		clause("WITH", CTEName, w.keyword("AS"), "("+w.query(q.With)+")")
	}
	head := "SELECT"
	if q.Distinct {
		head = "SELECT DISTINCT"
	}
	clause(head, joined(q.Select, w.item))
	clause("FROM", w.from(q))
	if conditions := w.conditions(q.Where, q.Or); correlation != "" || conditions != "" {
		clause("WHERE", w.both(correlation, conditions, q.Or && len(q.Where) > 1))
	}
	if len(q.Group) > 0 {
		clause("GROUP BY", joined(q.Group, w.column))
	}
	if len(q.Having) > 0 {
		clause("HAVING", w.conditions(q.Having, false))
	}
	if q.Window != nil {
		clause("WINDOW", WindowName, w.keyword("AS"), "("+w.window(q.Window)+")")
	}
	if q.Set != "" {
		clause(q.Set, w.query(q.Right))
	}
	if len(q.Order) > 0 {
		clause("ORDER BY", joined(q.Order, w.orderTerm))
	}
	if q.Limit > 0 {
		clause("LIMIT", strconv.Itoa(q.Limit))
	}
	return s.String()
}

// both joins a correlation and further conditions, either of which may be empty.
func (w *writer) both(correlation, conditions string, or bool) string {
	switch {
	case correlation == "":
		return conditions
	case conditions == "":
		return correlation
	case or:
		conditions = "(" + conditions + ")"
	}
	return correlation + w.keyword(" AND ") + conditions
}

func joined[T any](items []T, print func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = print(item)
	}
	return strings.Join(texts, ", ")
}

func (w *writer) from(q *Query) string {
	source := func(table string) string {
		if w.style.Aliases && len(q.Joins) > 0 {
			return table + w.keyword(" AS ") + q.qualifier(w.style)(Column{Table: table})
		}
		return table
	}
	switch {
	case q.With != nil && q.Table == "":
		return CTEName
	case q.Derived != nil:
		return "(" + w.query(q.Derived) + ")"
	}
	text := source(q.Table)
	for _, j := range q.Joins {
		kind := j.Kind
		if w.style.Inner && kind == "JOIN" {
			kind = "INNER JOIN"
		}
		text += " " + w.keyword(kind) + " " + source(j.Table)
		if j.Left.Name != "" { // a join without a key is a fault
			text += w.keyword(" ON ") + w.column(j.Left) + " = " + w.column(j.Right)
		}
	}
	return text
}

func (w *writer) column(c Column) string {
	if name := w.qualify(c); name != "" && c.Name != "*" {
		return name + "." + c.Name
	}
	return c.Name
}

func (w *writer) window(v *Window) string {
	text := w.keyword("PARTITION BY ") + w.column(v.Partition)
	if len(v.Order) > 0 {
		text += w.keyword(" ORDER BY ") + joined(v.Order, w.orderTerm)
	}
	return text
}

func (w *writer) item(t Term) string {
	text := w.term(t)
	if t.Alias != "" {
		text += w.keyword(" AS ") + t.Alias
	}
	return text
}

func (w *writer) orderTerm(o OrderTerm) string {
	if o.Desc {
		return w.term(o.Term) + w.keyword(" DESC")
	}
	return w.term(o.Term)
}

func (w *writer) term(t Term) string {
	text := w.column(t.Column)
	switch {
	case t.Case != nil:
		return fmt.Sprintf("%s %s %s %s %s %s %s", w.keyword("CASE WHEN"), w.condition(t.Case.When),
			w.keyword("THEN"), t.Case.Then, w.keyword("ELSE"), t.Case.Else, w.keyword("END"))
	case t.Op != "":
		text += " " + t.Op + " " + w.column(*t.Right)
	}
	if t.Distinct {
		text = w.keyword("DISTINCT ") + text
	}
	if t.Func != "" {
		text = t.Func + "(" + text + ")"
	}
	if t.Over {
		text += w.keyword(" OVER ") + WindowName
	}
	return text
}

func (w *writer) conditions(all []Condition, or bool) string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = w.condition(c)
	}
	if or {
		return strings.Join(texts, w.keyword(" OR "))
	}
	return strings.Join(texts, w.keyword(" AND "))
}

var flipped = map[string]string{"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

func (w *writer) condition(c Condition) string {
	left := w.term(c.Left)
	switch c.Op {
	case "is null", "is not null":
		return left + " " + w.keyword(strings.ToUpper(c.Op))
	case "between":
		return left + w.keyword(" BETWEEN ") + c.Values[0] + w.keyword(" AND ") + c.Values[1]
	case "starts", "ends", "contains", "lacks":
		p, text := likePattern[c.Op], c.Values[0]
		return left + " " + w.keyword(p.operator) + " '" + p.before + text[1:len(text)-1] + p.after + "'"
	case "exists", "not exists":
		return w.keyword(strings.ToUpper(c.Op)) + " (" + w.exists(c) + ")"
	case "in", "not in":
		set := strings.Join(c.Values, ", ")
		if c.Query != nil {
			set = w.query(c.Query)
		}
		return left + " " + w.keyword(strings.ToUpper(c.Op)) + " (" + set + ")"
	}
	if c.Query != nil {
		return left + " " + c.Op + " (" + w.query(c.Query) + ")"
	}
	if w.style.Flip {
		return c.Values[0] + " " + flipped[c.Op] + " " + left
	}
	return left + " " + c.Op + " " + c.Values[0]
}

// exists renders the sub-query of EXISTS, all its columns qualified by table
// names, since those of the outer query are in scope too.
func (w *writer) exists(c Condition) string {
	inner := &writer{w.style, func(c Column) string { return c.Table }}
	outer := c.Left.Column.Table + "." + c.Left.Column.Name
	if name := w.qualify(c.Left.Column); name != "" {
		outer = name + "." + c.Left.Column.Name
	}
	sub := *c.Query
	correlation := inner.column(sub.Select[0].Column) + " = " + outer
	sub.Select = []Term{columnTerm(Column{Name: "*"})}
	return inner.block(&sub, correlation)
}
