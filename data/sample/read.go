package sample

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"caper/sql"
)

// ReadQuery reads a statement as the value that the generator would have composed: the
// way back from Query.SQL. So queries that were not composed here can be asked in the
// words of the benchmark's questions. What a Query cannot hold, and what a question would
// not say (Query.Question), is an error. Windows are not read.
func ReadQuery(tree *sql.Node, schema *sql.Schema) (*Query, error) {
	q, err := (&reader{schema: schema}).statement(tree)
	if err != nil {
		return nil, fmt.Errorf("no query of the built-in benchmark: %w", err)
	}
	if what := unsaid(q, schema); what != "" {
		return nil, fmt.Errorf("no question of the built-in benchmark says %s", what)
	}
	return q, nil
}

// reader reads one block. Its sources are what the block's columns can belong to.
type reader struct {
	schema  *sql.Schema
	outer   *reader
	sources []namedTable
	tally   bool // the source is a derived table
}

type namedTable struct{ name, table string }

func (r *reader) statement(n *sql.Node) (*Query, error) {
	if n.Kind == sql.Select {
		return r.block(n)
	}
	var set *sql.Node
	for _, c := range n.Children {
		if c.Kind == sql.SetOp && set == nil {
			set = c
		} else if c.Kind == sql.SetOp || c.Kind == sql.With {
			return nil, fmt.Errorf("%s beside a set operation", c.Kind)
		}
	}
	if n.Kind != sql.Compound || set == nil {
		return nil, fmt.Errorf("a statement of kind %s", n.Kind)
	}
	q, err := r.statement(n.Children[0])
	if err != nil {
		return nil, err
	}
	q.Set = set.Value
	if q.Right, err = (&reader{schema: r.schema}).statement(set.Children[0]); err != nil {
		return nil, err
	}
	return q, r.tail(q, n)
}

func (r *reader) block(n *sql.Node) (q *Query, err error) {
	q = &Query{}
	for _, c := range n.Children {
		if c.Kind == sql.Window {
			return nil, errors.New("a window")
		}
	}
	if with := n.Child(sql.With); with != nil {
		if len(with.Children) != 1 || with.Value != "" || with.Children[0].Value != CTEName || len(with.Children[0].Children) != 1 {
			return nil, errors.New("a WITH of another form than " + CTEName)
		}
		if q.With, err = (&reader{schema: r.schema}).statement(with.Children[0].Children[0]); err != nil {
			return nil, err
		}
	}
	if err := r.from(q, n.Child(sql.From)); err != nil {
		return nil, err
	}
	projection := n.Child(sql.Projection)
	q.Distinct = projection.Value == "DISTINCT"
	for _, item := range projection.Children {
		t, err := r.term(item.Children[0])
		if err != nil {
			return nil, err
		}
		if alias := item.Child(sql.Alias); alias != nil {
			t.Alias = alias.Value
		}
		q.Select = append(q.Select, t)
	}
	if q.Where, q.Or, err = r.conditions(n.Child(sql.Where)); err != nil {
		return nil, err
	}
	if by := n.Child(sql.GroupBy); by != nil {
		for _, key := range by.Children {
			t, err := r.term(key)
			if err != nil || !t.plain() {
				return nil, errors.Join(errors.New("a GROUP BY key that is no column"), err)
			}
			q.Group = append(q.Group, t.Column)
		}
	}
	having, or, err := r.conditions(n.Child(sql.Having))
	if q.Having = having; err != nil || or {
		return nil, errors.Join(errors.New("a HAVING of another form"), err)
	}
	return q, r.tail(q, n)
}

// from reads the sources and finds the subject: the table that refers to the others, and
// that on the left of a LEFT JOIN.
func (r *reader) from(q *Query, n *sql.Node) error {
	if n == nil {
		return errors.New("a SELECT without FROM")
	}
	switch first := n.Children[0]; {
	case first.Kind == sql.Derived && len(n.Children) == 1:
		var err error
		if q.Derived, err = (&reader{schema: r.schema}).statement(first.Children[0]); err != nil {
			return err
		}
		r.tally, q.Subject = true, q.Derived.Subject
		r.sources = []namedTable{{"", q.Derived.Table}}
		return nil
	case first.Kind == sql.Table && first.Value == CTEName && q.With != nil && len(n.Children) == 1:
		q.Subject = q.With.Subject
		r.sources = []namedTable{{CTEName, q.With.Table}}
		return nil
	case first.Kind != sql.Table || q.With != nil:
		return fmt.Errorf("a source of kind %s", first.Kind)
	}
	for i, c := range n.Children {
		source := c
		if i > 0 {
			source = c.Children[0]
		}
		if source.Kind != sql.Table || r.schema.Table(source.Value) == nil {
			return fmt.Errorf("the source %s", sql.Render(source))
		}
		table := r.schema.Table(source.Value).Name
		if q.reads(table) {
			return errors.New("a table joined with itself")
		}
		name := table
		if alias := source.Child(sql.Alias); alias != nil {
			name = alias.Value
		}
		r.sources = append(r.sources, namedTable{name, table})
		if i == 0 {
			q.Table = table
			continue
		}
		j, err := r.join(c, table)
		if err != nil {
			return err
		}
		q.Joins = append(q.Joins, j)
	}
	return r.subject(q)
}

func (r *reader) join(n *sql.Node, table string) (Join, error) {
	j := Join{Kind: n.Value, Table: table}
	on := n.Child(sql.On)
	if n.Value != "JOIN" && n.Value != "LEFT JOIN" || on == nil || on.Children[0].Kind != sql.Compare || on.Children[0].Value != "=" {
		return j, fmt.Errorf("the join %s", sql.Render(n))
	}
	left, err := r.term(on.Children[0].Children[0])
	right, failed := r.term(on.Children[0].Children[1])
	if err := errors.Join(err, failed); err != nil || !left.plain() || !right.plain() {
		return j, errors.Join(fmt.Errorf("the join %s", sql.Render(n)), err)
	}
	if j.Left, j.Right = left.Column, right.Column; j.Left.Table == table {
		j.Left, j.Right = j.Right, j.Left
	}
	if j.Right.Table != table || !r.refers(j.Left, j.Right) && !r.refers(j.Right, j.Left) {
		return j, fmt.Errorf("the join %s, which follows no foreign key", sql.Render(n))
	}
	return j, nil
}

// refers reports a foreign key.
func (r *reader) refers(child, parent Column) bool { return refers(r.schema, child, parent) }

func refers(schema *sql.Schema, child, parent Column) bool {
	return slices.ContainsFunc(schema.ForeignKeys, func(k sql.ForeignKey) bool {
		return strings.EqualFold(k.Table, child.Table) && strings.EqualFold(k.Column, child.Name) &&
			strings.EqualFold(k.RefTable, parent.Table) && strings.EqualFold(k.RefColumn, parent.Name)
	})
}

func (r *reader) subject(q *Query) error {
	parents := map[string]bool{}
	for _, j := range q.Joins {
		if j.Kind == "LEFT JOIN" {
			if len(q.Joins) > 1 || !r.refers(j.Right, j.Left) {
				return errors.New("a LEFT JOIN of another form than of a table with what refers to it")
			}
			q.Subject = q.Table
			return nil
		}
		if r.refers(j.Left, j.Right) {
			parents[j.Right.Table] = true
		} else {
			parents[j.Left.Table] = true
		}
	}
	for _, t := range q.tables() {
		if parents[t] {
			continue
		}
		if q.Subject != "" {
			return fmt.Errorf("two tables, %s and %s, to which no other refers", q.Subject, t)
		}
		q.Subject = t
	}
	return nil
}

// tail reads ORDER BY and LIMIT.
func (r *reader) tail(q *Query, n *sql.Node) error {
	if by := n.Child(sql.OrderBy); by != nil {
		for _, o := range by.Children {
			t, err := r.term(o.Children[0])
			if err != nil || o.Value != "ASC" && o.Value != "DESC" {
				return errors.Join(fmt.Errorf("the order %s", sql.Render(o)), err)
			}
			q.Order = append(q.Order, OrderTerm{t, o.Value == "DESC"})
		}
	}
	if limit := n.Child(sql.Limit); limit != nil {
		count, err := strconv.Atoi(limit.Children[0].Value)
		if err != nil || count < 1 || len(limit.Children) > 1 {
			return fmt.Errorf("the limit %s", sql.Render(limit))
		}
		q.Limit = count
	}
	return nil
}

func (r *reader) term(n *sql.Node) (Term, error) {
	switch n.Kind {
	case sql.Star:
		if n.Qualifier == "" {
			return columnTerm(Column{Name: "*"}), nil
		}
	case sql.Column:
		c, err := r.column(n)
		return columnTerm(c), err
	case sql.Aggregate:
		return r.aggregate(n)
	case sql.Binary:
		left, err := r.term(n.Children[0])
		right, failed := r.term(n.Children[1])
		if strings.Contains("+-*", n.Value) && err == nil && failed == nil && left.plain() && right.plain() {
			return Term{Column: left.Column, Op: n.Value, Right: &right.Column}, nil
		}
	case sql.Case:
		return r.caseOf(n)
	}
	return Term{}, fmt.Errorf("the expression %s", sql.Render(n))
}

func (r *reader) aggregate(n *sql.Node) (Term, error) {
	if len(n.Arguments()) != 1 || !slices.Contains([]string{"count", "sum", "avg", "min", "max"}, n.Value) {
		return Term{}, fmt.Errorf("the call %s", sql.Render(n))
	}
	t, err := r.term(n.Arguments()[0])
	if err != nil || !t.plain() {
		return Term{}, errors.Join(fmt.Errorf("the call %s", sql.Render(n)), err)
	}
	t.Func = n.Value
	for _, mark := range n.Children[1:] {
		if mark.Kind != sql.Distinct || t.Func != "count" {
			return Term{}, fmt.Errorf("the call %s", sql.Render(n))
		}
		t.Distinct = true
	}
	if t.Func == "count" && t.Column.Name != "*" && !t.Distinct {
		return Term{}, fmt.Errorf("the call %s", sql.Render(n))
	}
	return t, nil
}

func (r *reader) caseOf(n *sql.Node) (Term, error) {
	if len(n.Children) == 2 && n.Children[0].Kind == sql.When && n.Children[1].Kind == sql.Else {
		when, err := r.condition(n.Children[0].Children[0])
		then, isText := constant(n.Children[0].Children[1])
		other, isAlso := constant(n.Children[1].Children[0])
		if err == nil && isText && isAlso && when.Query == nil {
			return Term{Case: &Case{when, then, other}}, nil
		}
	}
	return Term{}, fmt.Errorf("the expression %s", sql.Render(n))
}

// column finds the table of a column; that of a derived table's tally has none.
func (r *reader) column(n *sql.Node) (Column, error) {
	if r.tally && n.Value == TallyName {
		return Column{Name: TallyName}, nil
	}
	for _, s := range r.sources {
		if n.Qualifier != "" && !strings.EqualFold(n.Qualifier, s.name) {
			continue
		}
		if t := r.schema.Table(s.table); t != nil {
			if c := t.Column(n.Value); c != nil {
				return Column{t.Name, c.Name}, nil
			}
		}
	}
	return Column{}, fmt.Errorf("the column %s", sql.Render(n))
}

// conditions reads a condition of WHERE or HAVING: a chain of one connective.
func (r *reader) conditions(clause *sql.Node) (all []Condition, or bool, err error) {
	if clause == nil {
		return nil, false, nil
	}
	return r.chain(clause.Children[0])
}

func (r *reader) chain(n *sql.Node) (all []Condition, or bool, err error) {
	parts := []*sql.Node{n}
	if n.Kind == sql.And || n.Kind == sql.Or {
		parts, or = n.Children, n.Kind == sql.Or
	}
	for _, part := range parts {
		c, err := r.condition(part)
		if err != nil {
			return nil, false, err
		}
		all = append(all, c)
	}
	return all, or, nil
}

func (r *reader) condition(n *sql.Node) (c Condition, err error) {
	unread := fmt.Errorf("the condition %s", sql.Render(n))
	if n.Kind == sql.Not && n.Children[0].Kind == sql.Exists {
		c, err = r.exists(n.Children[0])
		c.Op = "not exists"
		return c, err
	}
	if n.Kind == sql.Exists {
		return r.exists(n)
	}
	if !slices.Contains([]sql.Kind{sql.Compare, sql.NullTest, sql.Like, sql.Between, sql.In}, n.Kind) {
		return c, unread
	}
	left, rest := n.Children[0], n.Children[1:]
	c.Op = strings.ToLower(n.Value)
	if _, isLiteral := constant(left); isLiteral && n.Kind == sql.Compare {
		left, rest, c.Op = rest[0], n.Children[:1], flipped[c.Op]
	}
	if c.Left, err = r.term(left); err != nil {
		return c, err
	}
	if len(rest) == 1 && rest[0].Kind == sql.List {
		rest = rest[0].Children
	}
	if len(rest) == 1 && rest[0].Kind == sql.Subquery {
		c.Query, err = (&reader{schema: r.schema}).statement(rest[0].Children[0])
		return c, err
	}
	for _, v := range rest {
		text, ok := constant(v)
		if !ok {
			return c, unread
		}
		c.Values = append(c.Values, text)
	}
	if n.Kind == sql.Like {
		return c, c.readPattern(n.Value)
	}
	if n.Kind == sql.Between && n.Value != "BETWEEN" {
		return c, unread
	}
	return c, nil
}

// readPattern finds the text test that a LIKE pattern makes.
func (c *Condition) readPattern(operator string) error {
	core := strings.Trim(c.Values[0], "'")
	for _, op := range []string{"contains", "lacks", "starts", "ends"} {
		p := likePattern[op]
		text, starts := strings.CutPrefix(core, p.before)
		text, ends := strings.CutSuffix(text, p.after)
		if p.operator == operator && starts && ends && text != "" && !strings.ContainsAny(text, "%_") {
			c.Op, c.Values = op, []string{"'" + text + "'"}
			return nil
		}
	}
	return fmt.Errorf("the pattern %s %s", operator, c.Values[0])
}

// exists reads EXISTS (SELECT * FROM inner WHERE inner.a = outer.b ...).
func (r *reader) exists(n *sql.Node) (c Condition, err error) {
	c.Op = "exists"
	block := n.Children[0]
	unread := fmt.Errorf("the condition %s", sql.Render(n))
	where := block.Child(sql.Where)
	if block.Kind != sql.Select || where == nil {
		return c, unread
	}
	tie, rest := where.Children[0], []*sql.Node(nil)
	if tie.Kind == sql.And {
		tie, rest = tie.Children[0], tie.Children[1:]
	}
	if tie.Kind != sql.Compare || tie.Value != "=" {
		return c, unread
	}
	inner := &reader{schema: r.schema}
	q := &Query{}
	if err := inner.from(q, block.Child(sql.From)); err != nil {
		return c, err
	}
	own, err := inner.term(tie.Children[0])
	other, failed := r.term(tie.Children[1])
	if err := errors.Join(err, failed); err != nil || len(block.Children) > 3 || len(q.Joins) > 0 || !own.plain() || !other.plain() {
		return c, errors.Join(unread, err)
	}
	for _, part := range rest {
		conditions, or, err := inner.chain(part)
		if err != nil || or && len(rest) > 1 {
			return c, errors.Join(unread, err)
		}
		q.Where, q.Or = append(q.Where, conditions...), or
	}
	q.Select = []Term{own}
	c.Left, c.Query = other, q
	return c, nil
}

// constant is a literal as literal prints it.
func constant(n *sql.Node) (string, bool) {
	switch {
	case n.Kind == sql.String:
		return literal(n.Value), true
	case n.Kind == sql.Number:
		return n.Value, true
	case n.Kind == sql.Unary && n.Value == "-" && n.Children[0].Kind == sql.Number:
		return "-" + n.Children[0].Value, true
	}
	return "", false
}
