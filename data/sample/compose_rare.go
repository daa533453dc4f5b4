package sample

// rank is the window function that has no argument.
const rank = "rank"

// lastShape is the way to compose the last training question of a database: in
// three of five it asks for a construct that hardly any query has otherwise, so
// that the operators which need it are used on real executions. All other questions
// stay what they would be.
func (b *builder) lastShape(seed uint64, usual func() (*Query, bool)) func() (*Query, bool) {
	shapes := []func() (*Query, bool){b.peers, b.strictGroups, b.firstSorted, usual, usual}
	return pick(randomFor(seed, "last question", b.schema.id), shapes...)
}

// peers: a column beside a rank or an aggregate over a window that has a name.
func (b *builder) peers() (*Query, bool) {
	t := b.anyTable()
	categories, numbers := t.attributes(isCategory), t.attributes(isNumeric)
	if len(categories) == 0 || len(numbers) == 0 {
		return nil, false
	}
	number := pick(b.Rand, numbers...)
	q := &Query{
		Table: t.name, Subject: t.name,
		Select: []Term{columnTerm(pick(b.Rand, t.attributes(anyAttribute)...))},
		Window: &Window{Partition: pick(b.Rand, categories...)},
	}
	if chance(b.Rand, 0.5) {
		q.Select = append(q.Select, Term{Func: rank, Over: true})
		q.Window.Order = []OrderTerm{{columnTerm(number), chance(b.Rand, 0.5)}}
	} else {
		q.Select = append(q.Select, Term{Func: pick(b.Rand, "avg", "sum", "min", "max"), Column: number, Over: true})
	}
	b.addWhere(q, b.IntN(2))
	return q, true
}

// strictGroups: groups that two conditions of HAVING keep.
func (b *builder) strictGroups() (*Query, bool) {
	t := b.anyTable()
	numbers := t.attributes(isNumeric)
	if len(numbers) == 0 {
		return nil, false
	}
	aggregate := Term{Func: pick(b.Rand, "avg", "min", "max"), Column: pick(b.Rand, numbers...)}
	q := &Query{Table: t.name, Subject: t.name}
	b.addWhere(q, b.IntN(2))
	if !b.addGroup(q, t.attributes(isCategory), aggregate) {
		return nil, false
	}
	q.Having = []Condition{
		{Left: countAll, Op: pick(b.Rand, ">", ">="), Values: []string{literal(int64(2 + b.IntN(5)))}},
		{Left: aggregate, Op: pick(b.Rand, ">", "<"), Values: []string{b.valueOf(aggregate.Column)}},
	}
	return q, true
}

// firstSorted: the first of the rows that a common table expression picks and
// sorts, which SQLite passes on in that order.
func (b *builder) firstSorted() (*Query, bool) {
	t := b.anyTable()
	sorted := &Query{
		Table: t.name, Subject: t.name,
		Select: []Term{columnTerm(Column{Name: "*"})},
		Order:  []OrderTerm{{columnTerm(pick(b.Rand, t.attributes(anyAttribute)...)), chance(b.Rand, 0.5)}},
	}
	b.addWhere(sorted, 1)
	q := &Query{With: sorted, Subject: t.name, Limit: 1 + b.IntN(5)}
	for _, c := range b.choose(t.attributes(anyAttribute), 1+b.IntN(2)) {
		q.Select = append(q.Select, columnTerm(c))
	}
	return q, true
}
