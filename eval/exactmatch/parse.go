package exactmatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The words that the official parser knows. HAVING, ASC and the kinds of joins are
// not among the clause words: it does not expect them where a clause may end.
var (
	clauseWords    = []string{"select", "from", "where", "group", "order", "limit", "intersect", "union", "except"}
	joinWords      = []string{"join", "on", "as"}
	whereOperators = []string{"not", "between", "=", ">", "<", ">=", "<=", "!=", "in", "like", "is", "exists"}
	unitOperators  = []string{"none", "-", "+", "*", "/"}
	aggregates     = []string{"none", "max", "min", "count", "sum", "avg"}
	setOperators   = []string{"intersect", "union", "except"}
)

const none = "none"

// maxDepth is how deep queries may nest; the official parser's language ends a
// recursion at about this depth.
const maxDepth = 200

// ParseError says why the official parser cannot read a query.
type ParseError struct{ text string }

func (e *ParseError) Error() string { return e.text }

// Parse reads a query as a script's parser does. What stands behind the last
// clause that it understands is not looked at.
func (s Script) Parse(schema *Schema, query string) (q *Query, err error) {
	tokens, err := tokenize(query)
	if err != nil {
		return nil, &ParseError{err.Error()}
	}
	p := &parser{script: s, tokens: tokens, schema: schema}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ParseError:
			q, err = nil, r
		default:
			panic(r)
		}
	}()
	p.aliases = p.scanAliases()
	return p.query(), nil
}

// parser reads tokens from at on. Its methods panic with a *ParseError.
type parser struct {
	script  Script
	tokens  []string
	at      int
	schema  *Schema
	aliases map[string]string // alias or table to table
	depth   int
}

func (p *parser) fail(format string, args ...any) {
	panic(&ParseError{fmt.Sprintf(format, args...)})
}

// peek returns the next token; there must be one.
func (p *parser) peek() string { return p.tokenAt(p.at) }

func (p *parser) tokenAt(i int) string {
	if i < 0 || i >= len(p.tokens) {
		p.fail("the query ends too early")
	}
	return p.tokens[i]
}

func (p *parser) done() bool { return p.at >= len(p.tokens) }

// is reports whether the next token is one of those.
func (p *parser) is(tokens ...string) bool {
	return !p.done() && slices.Contains(tokens, p.tokens[p.at])
}

// skip takes the next token if it is that one.
func (p *parser) skip(token string) bool {
	if p.is(token) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(token string) {
	if next := p.peek(); next != token {
		p.fail("%q where %q is expected", next, token)
	}
	p.at++
}

// clauseEnds reports that the next token starts another clause or ends the query.
func (p *parser) clauseEnds() bool { return p.is(clauseWords...) || p.is(")", ";") }

// scanAliases takes every "x AS y" of the query, also those that name a column.
func (p *parser) scanAliases() map[string]string {
	aliases := map[string]string{}
	for i, t := range p.tokens {
		if t == "as" {
			before := (i - 1 + len(p.tokens)) % len(p.tokens)
			aliases[p.tokenAt(i+1)] = p.tokens[before]
		}
	}
	for table := range p.schema.columns {
		if _, taken := aliases[table]; taken {
			p.fail("the alias %s is a table's name", table)
		}
		aliases[table] = table
	}
	return aliases
}

// query reads a SELECT, with the set operation behind it. FROM is read first: its
// tables tell whose the columns of the other clauses are.
func (p *parser) query() *Query {
	if p.depth++; p.depth > maxDepth {
		p.fail("queries nest deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	isBlock := p.peek() == "("
	q := &Query{}
	start := p.at
	tables := p.from(q)
	end := p.at

	p.at = start
	p.skip("(")
	p.selectList(q, tables)
	p.at = end
	if p.skip("where") {
		q.Where = p.conditions(tables)
	}
	p.groupBy(q, tables)
	if p.skip("having") {
		q.Having = p.conditions(tables)
	}
	p.orderBy(q, tables)
	if p.skip("limit") {
		q.Limit = p.limit()
	}
	p.semicolons()
	if isBlock {
		p.expect(")")
	}
	p.semicolons()
	if p.is(setOperators...) {
		q.SetOperator = p.tokens[p.at]
		p.at++
		q.Operand = p.query()
	}
	return q
}

func (p *parser) limit() string {
	token := p.peek()
	p.at++
	if !p.script.limitIsNumber() {
		return token
	}
	n, err := strconv.Atoi(token)
	if err != nil {
		p.fail("LIMIT %q is no number", token)
	}
	return strconv.Itoa(n)
}

func (p *parser) semicolons() {
	for p.skip(";") {
	}
}

// from reads the first FROM at or behind the current token. It returns the tables in
// which columns without a table's name are looked up.
func (p *parser) from(q *Query) (tables []string) {
	found := slices.Index(p.tokens[p.at:], "from")
	if found < 0 {
		p.fail("no FROM")
	}
	p.at += found + 1
	for !p.done() {
		isBlock := p.skip("(")
		if p.peek() == "select" {
			q.From.Tables = append(q.From.Tables, Table{Query: p.query()})
		} else {
			p.skip("join")
			table := p.table()
			q.From.Tables = append(q.From.Tables, Table{Name: table})
			tables = append(tables, table)
		}
		if p.skip("on") {
			on := p.conditions(tables)
			if q.From.On.length() > 0 {
				q.From.On.addWord("and")
			}
			p.append(&q.From.On, on)
		}
		if isBlock {
			p.expect(")")
		}
		if p.clauseEnds() {
			break
		}
	}
	return tables
}

func (p *parser) append(to *Conditions, more Conditions) {
	for i, c := range more.List {
		if i > 0 {
			to.Words = append(to.Words, more.Words[i-1])
		}
		p.add(to, c)
	}
	to.Words = append(to.Words, more.Words[max(len(more.List)-1, 0):]...)
}

func (p *parser) table() string {
	table, ok := p.aliases[p.peek()]
	if !ok || !p.schema.known(table) {
		p.fail("%q is no table", p.peek())
	}
	p.at++
	if p.is("as") {
		p.at += 2
	}
	return table
}

func (p *parser) selectList(q *Query, tables []string) {
	p.expect("select")
	q.Distinct = p.skip("distinct")
	for !p.done() && !p.is(clauseWords...) {
		item := Item{Aggregate: none}
		if p.is(aggregates...) {
			item.Aggregate = p.tokens[p.at]
			p.at++
		}
		item.Expr = p.expr(tables)
		q.Select = append(q.Select, item)
		p.skip(",")
	}
}

func (p *parser) groupBy(q *Query, tables []string) {
	if !p.skip("group") {
		return
	}
	p.expect("by")
	for !p.done() && !p.clauseEnds() {
		q.GroupBy = append(q.GroupBy, p.column(tables))
		if !p.skip(",") {
			return
		}
	}
}

func (p *parser) orderBy(q *Query, tables []string) {
	if !p.skip("order") {
		return
	}
	p.expect("by")
	q.OrderBy = &Order{}
	for !p.done() && !p.clauseEnds() {
		q.OrderBy.Items = append(q.OrderBy.Items, p.expr(tables))
		direction := ""
		if p.is("asc", "desc") {
			direction = p.tokens[p.at]
			p.at++
		}
		q.OrderBy.Directions = append(q.OrderBy.Directions, direction)
		if !p.skip(",") {
			return
		}
	}
}

// expr reads a column or two with an operator between them.
func (p *parser) expr(tables []string) Expr {
	isBlock := p.peek() == "("
	p.skip("(")
	e := Expr{Operator: none, Left: p.column(tables)}
	if p.is(unitOperators...) {
		e.Operator, e.Binary = p.tokens[p.at], true
		p.at++
		e.Right = p.column(tables)
	}
	if isBlock {
		p.expect(")")
	}
	return e
}

// column reads a column, with an aggregate around it or DISTINCT before it.
func (p *parser) column(tables []string) Column {
	isBlock := p.peek() == "("
	p.skip("(")
	c := Column{Aggregate: none}
	if aggregate := p.peek(); slices.Contains(aggregates, aggregate) {
		p.at++
		p.expect("(")
		c.Aggregate, c.Distinct = aggregate, p.skip("distinct")
		c.Name = p.name(tables)
		p.expect(")")
		return c // and the bracket that opened the block stays open
	}
	c.Distinct = p.skip("distinct")
	c.Name = p.name(tables)
	if isBlock {
		p.expect(")")
	}
	return c
}

// name reads a column's name and returns it with its table's.
func (p *parser) name(tables []string) string {
	token := p.peek()
	p.at++
	if token == star {
		return star
	}
	if parts := strings.Split(token, "."); len(parts) > 1 {
		table, ok := p.aliases[parts[0]]
		if !ok || len(parts) > 2 || !p.schema.known(table+"."+parts[1]) {
			p.fail("%q is no column", token)
		}
		return table + "." + parts[1]
	}
	for _, t := range tables {
		if p.schema.columns[p.aliases[t]][token] {
			return t + "." + token
		}
	}
	p.fail("%q is no column of %s", token, strings.Join(tables, ", "))
	return ""
}

func (p *parser) conditions(tables []string) (all Conditions) {
	for !p.done() {
		c := Condition{Expr: p.expr(tables)}
		c.Not = p.peek() == "not"
		p.skip("not")
		c.Operator = p.peek()
		if !slices.Contains(whereOperators, c.Operator) {
			p.fail("%q where an operator is expected", c.Operator)
		}
		p.at++
		c.Values[0] = p.value(tables)
		if c.Operator == "between" {
			p.expect("and")
			c.Values[1] = p.value(tables)
		}
		p.add(&all, c)
		if p.clauseEnds() || p.is(joinWords...) {
			return all
		}
		if p.is("and", "or") {
			all.addWord(p.tokens[p.at])
			p.at++
		}
	}
	return all
}

func (c *Conditions) addWord(text string) { c.Words = append(c.Words, Word{Text: text}) }

// add appends a condition: to the conditions, or in the place of a missing word.
func (p *parser) add(to *Conditions, c Condition) {
	if len(to.List) > len(to.Words) {
		to.Words = append(to.Words, Word{Condition: &c})
	} else {
		to.List = append(to.List, c)
	}
}

// value reads what a condition compares with. A column is the whole rest up to the
// next AND, comma, bracket or clause word; OR does not end it, so "a = b OR c = 1"
// is one condition.
func (p *parser) value(tables []string) *Value {
	start := p.at
	isBlock := p.peek() == "("
	p.skip("(")
	v := &Value{}
	switch {
	case p.is("select"):
		v.Query = p.query()
	case !p.done() && strings.Contains(p.tokens[p.at], `"`):
		v.Text = p.tokens[p.at]
		p.at++
	case !p.done() && isNumber(p.tokens[p.at], &v.Number):
		p.at++
	default:
		end := p.at
		for end < len(p.tokens) && !slices.Contains(valueEnds, p.tokens[end]) {
			end++
		}
		part := &parser{script: p.script, tokens: p.tokens[start:end], schema: p.schema, aliases: p.aliases}
		c := part.column(tables)
		v.Column = &c
		p.at = end
	}
	if isBlock {
		p.expect(")")
	}
	return v
}

var valueEnds = slices.Concat([]string{",", ")", "and"}, clauseWords, joinWords)

func isNumber(token string, n *float64) bool {
	f, err := strconv.ParseFloat(token, 64)
	*n = f
	return (err == nil || f != 0) && !strings.ContainsAny(token, "xX")
}
