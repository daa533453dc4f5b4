package sample

import "math/rand/v2"

// builder composes one gold query over a filled database.
type builder struct {
	*rand.Rand
	*database
}

// shape draws a way to compose a query; it reports false when the schema does
// not carry it. The weights make up for clauses that few shapes have, so that
// every clause kind has enough queries to fail in.
func (b *builder) shape() func() (*Query, bool) {
	shapes := []struct {
		weight  int
		compose func() (*Query, bool)
	}{
		{13, b.list}, {6, b.aggregate}, {20, b.group}, {18, b.join}, {10, b.joinGroup},
		{4, b.leftJoin}, {13, b.nested}, {16, b.setOperation}, {3, b.tally}, {5, b.cte},
	}
	total := 0
	for _, s := range shapes {
		total += s.weight
	}
	draw := b.IntN(total)
	for _, s := range shapes {
		if draw -= s.weight; draw < 0 {
			return s.compose
		}
	}
	panic("unreachable: the weights sum to total")
}

func (b *builder) anyTable() *table { return pick(b.Rand, b.schema.tables...) }

// choose draws up to n different columns.
func (b *builder) choose(columns []Column, n int) []Column {
	var chosen []Column
	for _, i := range b.Perm(len(columns))[:min(n, len(columns))] {
		chosen = append(chosen, columns[i])
	}
	return chosen
}

func (b *builder) attributesOf(tables []string, accept func(*attribute) bool) []Column {
	var all []Column
	for _, name := range tables {
		all = append(all, b.schema.table(name).attributes(accept)...)
	}
	return all
}

// list: SELECT columns FROM table [WHERE] [ORDER BY] [LIMIT].
func (b *builder) list() (*Query, bool) {
	t := b.anyTable()
	q := &Query{Table: t.name, Subject: t.name, Select: b.projection(t)}
	b.addWhere(q, b.IntN(3))
	if q.Distinct = len(q.Select) == 1 && q.Select[0].plain() && chance(b.Rand, 0.25); !q.Distinct {
		b.addOrder(q, t.attributes(anyAttribute), 0.55)
	}
	return q, true
}

// projection draws 1 to 3 columns, sometimes an arithmetic or CASE expression.
func (b *builder) projection(t *table) []Term {
	var terms []Term
	for _, c := range b.choose(t.attributes(anyAttribute), 1+b.IntN(3)) {
		terms = append(terms, columnTerm(c))
	}
	numbers := t.attributes(isNumeric)
	switch {
	case len(numbers) >= 2 && chance(b.Rand, 0.5):
		pair := b.choose(numbers, 2)
		terms[len(terms)-1] = Term{Column: pair[0], Op: pick(b.Rand, "+", "-", "*"), Right: &pair[1]}
	case len(numbers) >= 1 && chance(b.Rand, 0.15):
		number := pick(b.Rand, numbers...)
		labels := pick(b.Rand, [2]string{"'high'", "'low'"}, [2]string{"'yes'", "'no'"}, [2]string{"'big'", "'small'"})
		when := Condition{Left: columnTerm(number), Op: pick(b.Rand, ">", "<", ">=", "<="), Values: []string{b.valueOf(number)}}
		terms = append(terms[:min(len(terms), 1)], Term{Case: &Case{when, labels[0], labels[1]}})
	}
	return terms
}

// aggregate: one row of aggregates over a table.
func (b *builder) aggregate() (*Query, bool) {
	t := b.anyTable()
	q := &Query{Table: t.name, Subject: t.name, Select: []Term{b.aggregateOf(t)}}
	if another := b.aggregateOf(t); chance(b.Rand, 0.35) && !sameTerm(another, q.Select[0]) {
		q.Select = append(q.Select, another)
	}
	b.addWhere(q, 1+b.IntN(2))
	return q, true
}

// aggregateOf draws an aggregate over t: mostly of a number, else a count.
func (b *builder) aggregateOf(t *table) Term {
	numbers := t.attributes(isNumeric)
	categories := t.attributes(isCategory)
	switch {
	case len(numbers) > 0 && chance(b.Rand, 0.65):
		return Term{Func: pick(b.Rand, "avg", "sum", "min", "max"), Column: pick(b.Rand, numbers...)}
	case len(categories) > 0 && chance(b.Rand, 0.15):
		return Term{Func: "count", Distinct: true, Column: pick(b.Rand, categories...)}
	}
	return countAll
}

// group: SELECT key, aggregate FROM table [WHERE] GROUP BY key [HAVING]
// [ORDER BY] [LIMIT].
func (b *builder) group() (*Query, bool) {
	t := b.anyTable()
	q := &Query{Table: t.name, Subject: t.name}
	b.addWhere(q, b.IntN(2))
	return q, b.addGroup(q, t.attributes(isCategory), b.aggregateOf(t))
}

// addGroup groups q by one of keys, rarely two, shows key and aggregate, and
// adds HAVING, ORDER BY and LIMIT.
func (b *builder) addGroup(q *Query, keys []Column, aggregate Term) bool {
	if len(keys) == 0 {
		return false
	}
	q.Group = b.choose(keys, 1+b.IntN(5)/4)
	for _, k := range q.Group {
		if k == aggregate.Column {
			return false // one value a group: nothing to aggregate
		}
		q.Select = append(q.Select, columnTerm(k))
	}
	q.Select = append(q.Select, aggregate)
	if chance(b.Rand, 0.65) {
		b.addHaving(q, aggregate)
	}
	if draw := b.Float64(); draw < 0.5 {
		key := pick(b.Rand, q.Select...)
		q.Order = []OrderTerm{{key, chance(b.Rand, 0.5)}}
		if draw < 0.3 {
			q.Limit = 1 + b.IntN(5)
		}
	}
	return true
}

// addHaving keeps the groups whose shown aggregate, or count, passes a bound.
func (b *builder) addHaving(q *Query, aggregate Term) {
	if aggregate.Func == "count" || chance(b.Rand, 0.5) {
		bound := literal(int64(1 + b.IntN(6)))
		q.Having = []Condition{{Left: countAll, Op: pick(b.Rand, ">", ">=", "<", "<="), Values: []string{bound}}}
		return
	}
	q.Having = []Condition{{Left: aggregate, Op: pick(b.Rand, ">", ">=", "<", "<="), Values: []string{b.valueOf(aggregate.Column)}}}
}

// nested: a list or count filtered by a sub-query.
func (b *builder) nested() (*Query, bool) {
	t := b.anyTable()
	c, ok := b.nestedCondition(t)
	if !ok {
		return nil, false
	}
	q := &Query{Table: t.name, Subject: t.name, Where: []Condition{c}}
	if chance(b.Rand, 0.2) {
		q.Select = []Term{countAll}
	} else {
		for _, c := range b.choose(t.attributes(anyAttribute), 1+b.IntN(2)) {
			q.Select = append(q.Select, columnTerm(c))
		}
		b.addOrder(q, t.attributes(anyAttribute), 0.3)
	}
	if extra := b.condition(pick(b.Rand, t.attributes(anyAttribute)...)); chance(b.Rand, 0.25) && extra.Left.Column != c.Left.Column {
		q.Where = append([]Condition{extra}, q.Where...)
	}
	return q, true
}

func (b *builder) nestedCondition(t *table) (Condition, bool) {
	if numbers := t.attributes(isNumeric); len(numbers) > 0 && chance(b.Rand, 0.4) {
		c := pick(b.Rand, numbers...)
		inner := &Query{Table: t.name, Subject: t.name, Select: []Term{{Func: pick(b.Rand, "avg", "avg", "min", "max"), Column: c}}}
		op := pick(b.Rand, ">", "<")
		if inner.Select[0].Func != "avg" {
			op = "="
		}
		if chance(b.Rand, 0.4) {
			b.addWhere(inner, 1)
			if op == "=" {
				op = pick(b.Rand, ">", "<")
			}
		}
		return Condition{Left: columnTerm(c), Op: op, Query: inner}, true
	}
	related, outer, inner, ok := b.relation(t)
	if !ok {
		return Condition{}, false
	}
	sub := &Query{Table: related.name, Subject: related.name, Select: []Term{columnTerm(inner)}}
	b.addWhere(sub, b.IntN(4)/2) // half of them without a condition of their own
	if outer.Name != b.schema.key && len(sub.Where) == 0 {
		b.addWhere(sub, 1) // every row has a parent: without a condition it says nothing
	}
	return Condition{Left: columnTerm(outer), Op: pick(b.Rand, "in", "not in", "exists", "not exists"), Query: sub}, true
}

// relation draws a table that refers to t or that t refers to, and the columns
// that tie them.
func (b *builder) relation(t *table) (related *table, outer, inner Column, ok bool) {
	for _, i := range b.Perm(len(b.schema.tables)) {
		related = b.schema.tables[i]
		if j, ok := b.schema.join([]string{t.name}, related.name); ok {
			return related, j.Left, j.Right, true
		}
	}
	return nil, Column{}, Column{}, false
}

// setOperation: two lists with the same columns, over one table or two that
// share the column.
func (b *builder) setOperation() (*Query, bool) {
	t := b.anyTable()
	other := t
	if chance(b.Rand, 0.4) {
		other = b.anyTable()
	}
	shared := b.shared(t, other)
	if len(shared) == 0 {
		return nil, false
	}
	q, right := &Query{Table: t.name, Subject: t.name}, &Query{Table: other.name, Subject: other.name}
	for _, c := range b.choose(shared, 1+b.IntN(4)/3) {
		q.Select = append(q.Select, columnTerm(c))
		right.Select = append(right.Select, columnTerm(Column{other.name, c.Name}))
	}
	q.Set, q.Right = pick(b.Rand, "UNION", "UNION ALL", "INTERSECT", "INTERSECT", "EXCEPT", "EXCEPT"), right
	least := 0
	if t == other {
		least = 1
	}
	b.addWhere(q, max(least, b.IntN(2)))
	b.addWhere(right, max(least, b.IntN(2)))
	if chance(b.Rand, 0.35) {
		q.Order = []OrderTerm{{pick(b.Rand, q.Select...), chance(b.Rand, 0.5)}}
		if chance(b.Rand, 0.5) {
			q.Limit = 1 + b.IntN(9)
		}
	}
	return q, true
}

// shared lists t's attributes that other has too.
func (b *builder) shared(t, other *table) []Column {
	return t.attributes(func(a *attribute) bool {
		_, ok := other.column(a.name)
		return ok
	})
}

// tally: a query over a derived table of groups.
func (b *builder) tally() (*Query, bool) {
	t := b.anyTable()
	categories := t.attributes(isCategory)
	if len(categories) == 0 {
		return nil, false
	}
	key := columnTerm(pick(b.Rand, categories...))
	aggregate := b.aggregateOf(t)
	aggregate.Alias = TallyName
	inner := &Query{Table: t.name, Subject: t.name, Select: []Term{key, aggregate}, Group: []Column{key.Column}}
	b.addWhere(inner, b.IntN(2))
	tally := Column{Name: TallyName}
	q := &Query{Derived: inner, Subject: t.name}
	if chance(b.Rand, 0.5) {
		q.Select = []Term{{Func: pick(b.Rand, "avg", "max", "min"), Column: tally}}
		return q, true
	}
	bound := literal(int64(2 + b.IntN(8)))
	if aggregate.Func != "count" {
		bound = b.valueOf(aggregate.Column)
	}
	q.Select = []Term{key}
	q.Where = []Condition{{Left: columnTerm(tally), Op: pick(b.Rand, ">", "<"), Values: []string{bound}}}
	return q, true
}

// cte: a query over the rows that a common table expression picked.
func (b *builder) cte() (*Query, bool) {
	t := b.anyTable()
	picked := &Query{Table: t.name, Subject: t.name, Select: []Term{columnTerm(Column{Name: "*"})}}
	b.addWhere(picked, 1)
	q := &Query{With: picked, Subject: t.name}
	if chance(b.Rand, 0.5) {
		return q, b.addGroup(q, t.attributes(isCategory), b.aggregateOf(t))
	}
	q.Select = b.projection(t)
	b.addOrder(q, t.attributes(anyAttribute), 0.7)
	return q, true
}

// addOrder adds ORDER BY with probability p, and mostly LIMIT with it.
func (b *builder) addOrder(q *Query, keys []Column, p float64) {
	if !chance(b.Rand, p) {
		return
	}
	q.Order = []OrderTerm{{columnTerm(pick(b.Rand, keys...)), chance(b.Rand, 0.5)}}
	if another := columnTerm(pick(b.Rand, keys...)); chance(b.Rand, 0.2) && !sameTerm(another, q.Order[0].Term) {
		q.Order = append(q.Order, OrderTerm{another, chance(b.Rand, 0.3)})
	}
	if chance(b.Rand, 0.6) {
		q.Limit = 1 + b.IntN(9)
	}
}
