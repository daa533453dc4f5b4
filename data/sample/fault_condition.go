package sample

import "strings"

// Faults of WHERE and of conditions elsewhere.

// condition draws one of q's conditions, nil when it has none.
func (f *faulter) condition(q *Query) *Condition {
	if len(q.Where) == 0 {
		return nil
	}
	return &q.Where[f.IntN(len(q.Where))]
}

func (f *faulter) wrongConditionColumn(q *Query) bool {
	c := f.condition(q)
	if c == nil || f.schema.attribute(c.Left.Column) == nil {
		return false
	}
	var ok bool
	c.Left.Column, ok = f.sibling(c.Left.Column, q)
	return ok
}

func (f *faulter) wrongOperator(q *Query) bool {
	c := f.condition(q)
	return c != nil && f.changeOperator(c)
}

func (f *faulter) wrongLiteral(q *Query) bool {
	c := f.condition(q)
	return c != nil && f.changeLiteral(c)
}

func (f *faulter) wrongConnective(q *Query) bool {
	if len(q.Where) < 2 {
		return false
	}
	q.Or = !q.Or
	return true
}

func (f *faulter) lostCondition(q *Query) bool {
	if len(q.Where) == 0 {
		return false
	}
	i := f.IntN(len(q.Where))
	q.Where = append(q.Where[:i], q.Where[i+1:]...)
	return true
}

// extraCondition invents a condition on a column of the subject.
func (f *faulter) extraCondition(q *Query) bool {
	if q.Derived != nil || q.Or {
		return false
	}
	c := pick(f.Rand, f.schema.table(q.Subject).attributes(anyAttribute)...)
	if mentions(q, c) && chance(f.Rand, 0.5) {
		return false
	}
	a := f.schema.attribute(c)
	op := pick(f.Rand, ">", "<")
	if a.kind == category || a.kind == title {
		op = pick(f.Rand, "=", "!=")
	}
	q.Where = append(q.Where, Condition{Left: columnTerm(c), Op: op, Values: []string{literal(a.draw(f.Rand))}})
	return true
}

// confused lists what each operator is taken for.
var confused = map[string][]string{
	"=": {"!=", ">", "<"}, "!=": {"=", "="},
	">": {"<", "<", ">=", "<="}, "<": {">", ">", "<=", ">="},
	">=": {"<=", ">", "<"}, "<=": {">=", "<", ">"},
	"in": {"not in"}, "not in": {"in"},
	"exists": {"not exists"}, "not exists": {"exists"},
	"starts": {"ends", "contains"}, "ends": {"starts", "contains"},
	"contains": {"lacks", "starts", "ends"}, "lacks": {"contains"},
	"is null": {"is not null"}, "is not null": {"is null"},
}

func (f *faulter) changeOperator(c *Condition) bool {
	if c.Op == "between" { // only one of the bounds
		i := f.IntN(2)
		c.Op, c.Values = []string{">=", "<="}[i], c.Values[i:i+1]
		return true
	}
	choices := confused[c.Op]
	if a := f.schema.attribute(c.Left.Column); c.Op == "=" && a != nil && !isOrdered(a) {
		choices = choices[:1]
	}
	c.Op = pick(f.Rand, choices...)
	return true
}

// changeLiteral replaces one literal by another value of the same domain.
func (f *faulter) changeLiteral(c *Condition) bool {
	a := f.schema.attribute(c.Left.Column)
	if a == nil || len(c.Values) == 0 {
		return false
	}
	i := f.IntN(len(c.Values))
	v := a.draw(f.Rand)
	if a.kind == title && likePattern[c.Op].operator != "" {
		first, second, _ := strings.Cut(v.(string), " ")
		v = pick(f.Rand, first, second)
		switch c.Op {
		case "starts":
			v = first
		case "ends":
			v = second
		}
	}
	changed := literal(v)
	ok := changed != c.Values[i]
	c.Values[i] = changed
	return ok
}

// wrongNested spoils a condition's sub-query: its condition, its aggregate, its
// column or its table.
func (f *faulter) wrongNested(q *Query) bool {
	for i := range q.Where {
		c := &q.Where[i]
		if c.Query == nil {
			continue
		}
		inner := c.Query
		if len(inner.Where) > 0 && chance(f.Rand, 0.5) {
			return f.one(inner, conditionFaults)
		}
		if t := &inner.Select[0]; t.Func != "" {
			return f.wrongFunction(t, inner.Subject)
		}
		return f.wrongLink(c)
	}
	return false
}

// wrongLink ties a sub-query by the wrong column of either table.
func (f *faulter) wrongLink(c *Condition) bool {
	side := pick(f.Rand, &c.Left.Column, &c.Query.Select[0].Column)
	for _, other := range f.schema.table(side.Table).columns {
		if other.attribute == nil && other.name != side.Name {
			side.Name = other.name
			return true
		}
	}
	return false
}
