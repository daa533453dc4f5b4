package sample

// Faults of SELECT, FROM, GROUP BY, HAVING, ORDER BY, LIMIT and set operations.

func (f *faulter) item(q *Query) *Term { return &q.Select[f.IntN(len(q.Select))] }

func (f *faulter) wrongColumn(q *Query) bool {
	t := f.item(q)
	if t.Column.Name == "*" || t.Case != nil {
		return false
	}
	var ok bool
	t.Column, ok = f.sibling(t.Column, q)
	return ok
}

func (f *faulter) wrongAggregate(q *Query) bool { return f.wrongFunction(f.item(q), q.Subject) }

// wrongFunction replaces an aggregate: one of numbers by another one or by a
// count, a count by an aggregate of one of the subject's numbers.
func (f *faulter) wrongFunction(t *Term, subject string) bool {
	numbers := f.schema.table(subject).attributes(isNumeric)
	switch {
	case t.Func == "" || t.Over || t.Column.Name == TallyName && t.Func == "count":
		return false
	case t.Func != "count" && t.Column.Name != TallyName && chance(f.Rand, 0.15):
		alias := t.Alias
		*t = countAll
		t.Alias = alias
	case t.Func != "count":
		t.Func = otherThan(f.Rand, t.Func, "avg", "sum", "min", "max")
	case len(numbers) == 0:
		return false
	default:
		*t = Term{Func: pick(f.Rand, "sum", "avg", "max"), Column: pick(f.Rand, numbers...), Alias: t.Alias}
	}
	return true
}

// wrongQualifier takes the column of the same name from another joined table.
func (f *faulter) wrongQualifier(q *Query) bool {
	t := f.item(q)
	for _, name := range q.tables() {
		if _, ok := f.schema.table(name).column(t.Column.Name); ok && name != t.Column.Table && t.Column.Table != "" {
			t.Column.Table = name
			return true
		}
	}
	return false
}

func (f *faulter) wrongArithmetic(q *Query) bool {
	for i := range q.Select {
		t := &q.Select[i]
		if t.Op == "" {
			continue
		}
		if chance(f.Rand, 0.7) {
			t.Op = otherThan(f.Rand, t.Op, "+", "-", "*")
		} else if right, ok := f.sibling(*t.Right, q); ok {
			t.Right = &right
		}
		return true
	}
	return false
}

func (f *faulter) wrongCase(q *Query) bool {
	for i := range q.Select {
		c := q.Select[i].Case
		if c == nil {
			continue
		}
		switch f.IntN(3) {
		case 0:
			c.Then, c.Else = c.Else, c.Then
		case 1:
			return f.changeOperator(&c.When)
		default:
			return f.changeLiteral(&c.When)
		}
		return true
	}
	return false
}

func (f *faulter) lostItem(q *Query) bool {
	if len(q.Select) < 2 || q.Set != "" {
		return false
	}
	i := f.IntN(len(q.Select))
	q.Select = append(q.Select[:i], q.Select[i+1:]...)
	return true
}

func (f *faulter) extraItem(q *Query) bool {
	if q.Set != "" || q.Derived != nil {
		return false
	}
	extra := columnTerm(pick(f.Rand, f.schema.table(q.Subject).attributes(anyAttribute)...))
	for _, t := range q.Select {
		if sameTerm(t, extra) {
			return false
		}
	}
	q.Select = append(q.Select, extra)
	return true
}

// wrongTable reads another table in a query without joins, preferably one that
// has every column the query names; a writer that misses one gets an error.
func (f *faulter) wrongTable(q *Query) bool {
	if len(q.Joins) > 0 || q.Derived != nil {
		return false
	}
	if q.With != nil { // forgets the common table expression it wrote
		q.Table = q.Subject
		return true
	}
	var others, complete []string
	for _, t := range f.schema.tables {
		if t.name == q.Table {
			continue
		}
		others = append(others, t.name)
		has := true
		q.ownTerms(func(term *Term) {
			_, ok := t.column(term.Column.Name)
			has = has && (ok || term.Column.Name == "*")
		})
		if has {
			complete = append(complete, t.name)
		}
	}
	if len(complete) > 0 {
		others = complete
	}
	table := pick(f.Rand, others...)
	for i := range q.Where { // a correlation names the outer table
		if c := &q.Where[i].Left.Column; c.Table == q.Table {
			c.Table = table
		}
	}
	q.Table = table
	return true
}

// wrongKey matches a join on a wrong column on one of its sides.
func (f *faulter) wrongKey(q *Query) bool {
	if len(q.Joins) == 0 {
		return false
	}
	j := &q.Joins[f.IntN(len(q.Joins))]
	if j.Left.Name == "" { // lost already
		return false
	}
	side := pick(f.Rand, &j.Left, &j.Right)
	var columns []string
	for _, c := range f.schema.table(side.Table).columns {
		if c.name != side.Name && (c.attribute == nil || c.attribute.kind == whole) {
			columns = append(columns, c.name)
		}
	}
	if len(columns) == 0 {
		return false
	}
	side.Name = pick(f.Rand, columns...)
	return true
}

func (f *faulter) wrongJoinKind(q *Query) bool {
	if len(q.Joins) != 1 {
		return false
	}
	j := &q.Joins[0]
	if j.Kind == "LEFT JOIN" {
		j.Kind = "JOIN"
		return true
	}
	j.Kind = "LEFT JOIN"
	return j.Left.Name == f.schema.key // from a child to its parent it changes nothing
}

// lostJoin forgets the last table or the key that ties it.
func (f *faulter) lostJoin(q *Query) bool {
	if len(q.Joins) == 0 {
		return false
	}
	last := len(q.Joins) - 1
	if last == 0 && chance(f.Rand, 0.3) { // of two tables, so that the product stays small
		q.Joins[last].Left, q.Joins[last].Right = Column{}, Column{}
		return true
	}
	q.Joins = q.Joins[:last]
	return true
}

func (f *faulter) wrongDerived(q *Query) bool {
	if q.Derived == nil {
		return false
	}
	inner := q.Derived
	if len(inner.Where) > 0 && chance(f.Rand, 0.6) {
		return f.one(inner, conditionFaults)
	}
	if chance(f.Rand, 0.5) {
		return f.wrongFunction(&inner.Select[1], inner.Subject)
	}
	return f.wrongGroup(inner)
}

func (f *faulter) wrongGroup(q *Query) bool {
	k := &q.Group[f.IntN(len(q.Group))]
	var ok bool
	*k, ok = f.sibling(*k, q)
	return ok
}

func (f *faulter) lostGroup(q *Query) bool {
	i := f.IntN(len(q.Group))
	q.Group = append(q.Group[:i], q.Group[i+1:]...)
	return true
}

func (f *faulter) extraGroup(q *Query) bool {
	extra, ok := f.sibling(q.Group[0], q)
	for _, k := range q.Group {
		ok = ok && k != extra
	}
	q.Group = append(q.Group, extra)
	return ok
}

func (f *faulter) wrongHavingOperator(q *Query) bool { return f.changeOperator(&q.Having[0]) }
func (f *faulter) wrongHavingAggregate(q *Query) bool {
	return f.wrongFunction(&q.Having[0].Left, q.Subject)
}

func (f *faulter) wrongHavingLiteral(q *Query) bool {
	c := &q.Having[0]
	if c.Left.Func == "count" {
		c.Values[0] = literal(int64(1 + f.IntN(8)))
		return true
	}
	return f.changeLiteral(c)
}

func (f *faulter) wrongPartition(q *Query) bool {
	var ok bool
	q.Window.Partition, ok = f.sibling(q.Window.Partition, q)
	return ok
}

func (f *faulter) wrongRanking(q *Query) bool {
	if len(q.Window.Order) == 0 {
		return false
	}
	q.Window.Order[0].Desc = !q.Window.Order[0].Desc
	return true
}

func (f *faulter) wrongSetOperator(q *Query) bool {
	q.Set = otherThan(f.Rand, q.Set, "UNION", "INTERSECT", "EXCEPT")
	return true
}

func (f *faulter) wrongOperand(q *Query) bool {
	if len(q.Right.Where) > 0 && chance(f.Rand, 0.7) {
		return f.one(q.Right, conditionFaults)
	}
	return f.one(q.Right, []fault{{"select.column", (*faulter).wrongColumn}, {"from.table", (*faulter).wrongTable}})
}

func (f *faulter) wrongDirection(q *Query) bool {
	o := &q.Order[f.IntN(len(q.Order))]
	o.Desc = !o.Desc
	return true
}

// wrongOrderKey orders by another shown term or by a sibling column.
func (f *faulter) wrongOrderKey(q *Query) bool {
	o := &q.Order[f.IntN(len(q.Order))]
	if shown := *f.item(q); shown.Case == nil && !sameTerm(shown, o.Term) && chance(f.Rand, 0.5) {
		o.Term = shown
		return true
	}
	if q.Set != "" || o.Term.Column.Name == "*" {
		return false
	}
	var ok bool
	o.Term.Column, ok = f.sibling(o.Term.Column, q)
	return ok
}

func (f *faulter) lostOrder(q *Query) bool {
	if len(q.Order) > 1 {
		q.Order = q.Order[:1]
	} else {
		q.Order = nil
	}
	return true
}

func (f *faulter) wrongLimit(q *Query) bool {
	q.Limit = otherThan(f.Rand, q.Limit, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	return true
}

func (f *faulter) extraLimit(q *Query) bool {
	if q.Limit > 0 {
		return false
	}
	q.Limit = pick(f.Rand, 1, 1, 3, 5)
	return true
}

func (f *faulter) extraHaving(q *Query) bool {
	if len(q.Group) == 0 || len(q.Having) > 0 {
		return false
	}
	bound := literal(int64(1 + f.IntN(6)))
	q.Having = []Condition{{Left: countAll, Op: pick(f.Rand, ">", "<"), Values: []string{bound}}}
	return true
}

// inventedGroup collapses a list by one of its columns.
func (f *faulter) inventedGroup(q *Query) bool {
	t := q.Select[0]
	if !t.plain() || len(q.Group) > 0 || q.Set != "" || q.Derived != nil {
		return false
	}
	q.Group = []Column{t.Column}
	return true
}
