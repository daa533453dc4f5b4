package sample

import "strings"

// Conditions of gold queries, with literals from the data.

// addWhere adds n conditions on different columns of q's tables.
func (b *builder) addWhere(q *Query, n int) {
	for _, c := range b.choose(b.attributesOf(q.tables(), anyAttribute), n) {
		q.Where = append(q.Where, b.condition(c))
	}
	q.Or = len(q.Where) > 1 && chance(b.Rand, 0.3)
}

// condition draws a condition on a column, with literals from its rows.
func (b *builder) condition(c Column) Condition {
	a := b.schema.attribute(c)
	left := columnTerm(c)
	if a.nullable && chance(b.Rand, 0.06) {
		return Condition{Left: left, Op: pick(b.Rand, "is null", "is not null")}
	}
	values := []string{b.valueOf(c), b.valueOf(c)}
	switch {
	case a.kind == category:
		op := pick(b.Rand, "=", "=", "=", "!=", "in", "not in")
		if (op == "in" || op == "not in") && values[0] != values[1] {
			return Condition{Left: left, Op: op, Values: values}
		}
		return Condition{Left: left, Op: pick(b.Rand, "=", "=", "!="), Values: values[:1]}
	case a.kind == title:
		first, second, _ := strings.Cut(strings.Trim(values[0], "'"), " ")
		switch op := pick(b.Rand, "starts", "ends", "contains", "lacks"); op {
		case "starts":
			return Condition{Left: left, Op: op, Values: []string{literal(first)}}
		case "ends":
			return Condition{Left: left, Op: op, Values: []string{literal(second)}}
		default:
			return Condition{Left: left, Op: op, Values: []string{literal(pick(b.Rand, first, second))}}
		}
	case chance(b.Rand, 0.15):
		low, high := b.ordered(c)
		return Condition{Left: left, Op: "between", Values: []string{low, high}}
	case a.kind == whole && chance(b.Rand, 0.05):
		return Condition{Left: left, Op: pick(b.Rand, "=", "!="), Values: values[:1]}
	}
	return Condition{Left: left, Op: pick(b.Rand, ">", "<", ">=", "<="), Values: values[:1]}
}

// valueOf draws a value that occurs in column c, as a literal.
func (b *builder) valueOf(c Column) string { return literal(b.stored(c)) }

func (b *builder) stored(c Column) any {
	for t, tab := range b.schema.tables {
		for i, col := range tab.columns {
			if tab.name != c.Table || col.name != c.Name {
				continue
			}
			for range 20 {
				if v := pick(b.Rand, b.rows[t]...)[i]; v != nil {
					return v
				}
			}
			return col.attribute.draw(b.Rand) // a column of NULLs, near enough
		}
	}
	panic("sample: no column " + c.Table + "." + c.Name)
}

// ordered draws two values of c, the smaller first.
func (b *builder) ordered(c Column) (low, high string) {
	x, y := b.stored(c), b.stored(c)
	var swap bool
	switch x := x.(type) {
	case int64:
		swap = x > y.(int64)
	case float64:
		swap = x > y.(float64)
	default:
		swap = x.(string) > y.(string)
	}
	if swap {
		x, y = y, x
	}
	return literal(x), literal(y)
}
