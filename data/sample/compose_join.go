package sample

// Gold queries over several tables.

// path joins a subject with 1 to 3 of the tables it refers to, directly or over
// others.
func (b *builder) path() (subject *table, joined []string, ok bool) {
	subject = b.anyTable()
	if tables := b.schema.tables; chance(b.Rand, 0.5) {
		subject = tables[len(tables)-1] // it ties the others together
	}
	frontier, want := subject.parents(), 1+b.IntN(3)
	joined = []string{subject.name}
	for len(joined) <= want && len(frontier) > 0 {
		i := b.IntN(len(frontier))
		next := frontier[i]
		frontier = append(append(frontier[:i:i], frontier[i+1:]...), b.schema.table(next).parents()...)
		joined = append(joined, next)
	}
	return subject, joined, len(joined) > 1
}

// from sets FROM to the tables, beginning with start.
func (b *builder) from(q *Query, start string, tables []string) {
	q.Table, q.Joins = start, nil
	for len(q.Joins) < len(tables)-1 {
		for _, t := range tables {
			if q.reads(t) {
				continue
			}
			if j, ok := b.schema.join(q.tables(), t); ok {
				q.Joins = append(q.Joins, j)
				break
			}
		}
	}
}

// join returns the foreign key join of table to one of the tables before it.
func (s *schema) join(before []string, table string) (Join, bool) {
	for _, earlier := range before {
		for _, pair := range [][2]string{{earlier, table}, {table, earlier}} {
			child, parent := pair[0], pair[1]
			name := foreignKey(parent, s.key)
			if c, ok := s.table(child).column(name); ok && c.parent == parent {
				key, foreign := Column{parent, s.key}, Column{child, name}
				if earlier == parent {
					return Join{"JOIN", table, key, foreign}, true
				}
				return Join{"JOIN", table, foreign, key}, true
			}
		}
	}
	return Join{}, false
}

// join: SELECT columns of several tables FROM a JOIN b ... [WHERE] [ORDER BY].
func (b *builder) join() (*Query, bool) {
	subject, tables, ok := b.path()
	if !ok {
		return nil, false
	}
	q := &Query{Subject: subject.name}
	all := b.attributesOf(tables, anyAttribute)
	for _, c := range b.choose(all, 1+b.IntN(3)) {
		q.Select = append(q.Select, columnTerm(c))
	}
	b.from(q, q.Select[0].Column.Table, tables)
	b.addWhere(q, b.IntN(3))
	if q.Distinct = len(q.Select) == 1 && chance(b.Rand, 0.25); !q.Distinct {
		b.addOrder(q, all, 0.45)
	}
	return q, b.needsAll(q)
}

// needsAll says that the question can be answered only with every joined table:
// the outermost ones are spoken of somewhere.
func (b *builder) needsAll(q *Query) bool {
	spoken := map[string]bool{q.Subject: true}
	q.ownTerms(func(t *Term) { spoken[t.Column.Table] = true })
	for _, k := range q.Group {
		spoken[k.Table] = true
	}
	for _, name := range q.tables() {
		between := false // a table between two others is implied
		for _, parent := range b.schema.table(name).parents() {
			between = between || q.reads(parent)
		}
		if !spoken[name] && !between {
			return false
		}
	}
	return true
}

// joinGroup: an aggregate over the subject's rows for each key of another table.
func (b *builder) joinGroup() (*Query, bool) {
	subject, tables, ok := b.path()
	if !ok {
		return nil, false
	}
	keys := b.attributesOf(tables[1:], func(a *attribute) bool { return a.kind == category || a.kind == title })
	q := &Query{Subject: subject.name}
	if !b.addGroup(q, keys, b.aggregateOf(subject)) {
		return nil, false
	}
	b.from(q, q.Select[0].Column.Table, tables)
	b.addWhere(q, b.IntN(2))
	return q, b.needsAll(q)
}

// leftJoin: each row of a table with or without its children.
func (b *builder) leftJoin() (*Query, bool) {
	child := b.anyTable()
	if len(child.parents()) == 0 {
		return nil, false
	}
	parent := b.schema.table(pick(b.Rand, child.parents()...))
	names, details := b.choose(parent.attributes(anyAttribute), 1), b.choose(child.attributes(anyAttribute), 1)
	j, _ := b.schema.join([]string{parent.name}, child.name)
	j.Kind = "LEFT JOIN"
	q := &Query{Table: parent.name, Subject: parent.name, Joins: []Join{j}, Select: []Term{columnTerm(names[0]), columnTerm(details[0])}}
	if chance(b.Rand, 0.4) {
		q.Where = []Condition{b.condition(pick(b.Rand, parent.attributes(anyAttribute)...))}
	}
	return q, true
}
