package sample

import (
	"math/rand/v2"

	"caper/sql"
)

// faulter puts faults into a query, in place. Faults are those of text-to-SQL
// models: a sibling column, a wrong table or join key, a lost or invented
// condition, a wrong aggregate, comparison, literal, order, limit or operator,
// a lost clause. Where a wrong name is needed, one that the query already uses
// is preferred, because models confuse what the question mentions.
type faulter struct {
	*rand.Rand
	schema *schema
}

// fault changes a query and reports whether it could; the query is thrown away
// when it could not.
type fault struct {
	name  string // clause.what, as annotate names its operators
	apply func(f *faulter, q *Query) bool
}

// clauseFaults are the faults of one clause kind. weight makes up for the kinds
// that few queries have, so that failures spread over all kinds.
type clauseFaults struct {
	kind    sql.ClauseKind
	weight  float64
	present func(q *Query) bool
	faults  []fault
}

var catalogue = []clauseFaults{
	{sql.ClauseWith, 1.5, func(q *Query) bool { return q.With != nil }, []fault{
		{"with.inner", func(f *faulter, q *Query) bool { return f.one(q.With, conditionFaults) }},
	}},
	{sql.ClauseSelect, 0.9, func(q *Query) bool { return true }, []fault{
		{"select.column", (*faulter).wrongColumn},
		{"select.column", (*faulter).wrongColumn}, // the commonest, so it is drawn twice as often
		{"select.aggregate", (*faulter).wrongAggregate},
		{"select.aggregate", (*faulter).wrongAggregate},
		{"select.table", (*faulter).wrongQualifier},
		{"select.arithmetic", (*faulter).wrongArithmetic},
		{"select.case", (*faulter).wrongCase},
		{"select.drop", (*faulter).lostItem},
		{"select.add", (*faulter).extraItem},
	}},
	{sql.ClauseFrom, 1.3, func(q *Query) bool { return true }, []fault{
		{"from.table", (*faulter).wrongTable},
		{"from.key", (*faulter).wrongKey},
		{"from.key", (*faulter).wrongKey},
		{"from.kind", (*faulter).wrongJoinKind},
		{"from.drop", (*faulter).lostJoin},
		{"from.inner", (*faulter).wrongDerived},
	}},
	{sql.ClauseWhere, 0.9, func(q *Query) bool { return len(q.Where) > 0 }, whereFaults},
	{sql.ClauseGroupBy, 1.3, func(q *Query) bool { return len(q.Group) > 0 }, []fault{
		{"group.key", (*faulter).wrongGroup},
		{"group.drop", (*faulter).lostGroup},
		{"group.add", (*faulter).extraGroup},
	}},
	{sql.ClauseHaving, 3.8, func(q *Query) bool { return len(q.Having) > 0 }, []fault{
		{"having.comparison", (*faulter).wrongHavingOperator},
		{"having.literal", (*faulter).wrongHavingLiteral},
		{"having.aggregate", (*faulter).wrongHavingAggregate},
		{"having.drop", func(f *faulter, q *Query) bool { q.Having = nil; return true }},
	}},
	{sql.ClauseWindow, 1.5, func(q *Query) bool { return q.Window != nil }, []fault{
		{"window.partition", (*faulter).wrongPartition},
		{"window.direction", (*faulter).wrongRanking},
	}},
	{sql.ClauseSetOp, 2.2, func(q *Query) bool { return q.Set != "" }, []fault{
		{"setop.operator", (*faulter).wrongSetOperator},
		{"setop.operand", (*faulter).wrongOperand},
		{"setop.drop", func(f *faulter, q *Query) bool { q.Set, q.Right = "", nil; return true }},
	}},
	{sql.ClauseOrderBy, 1.0, func(q *Query) bool { return len(q.Order) > 0 }, []fault{
		{"order.direction", (*faulter).wrongDirection},
		{"order.direction", (*faulter).wrongDirection},
		{"order.direction", (*faulter).wrongDirection},
		{"order.key", (*faulter).wrongOrderKey},
		{"order.drop", (*faulter).lostOrder},
	}},
	{sql.ClauseLimit, 1.5, func(q *Query) bool { return q.Limit > 0 }, []fault{
		{"limit.count", (*faulter).wrongLimit},
		{"limit.count", (*faulter).wrongLimit},
		{"limit.drop", func(f *faulter, q *Query) bool { q.Limit = 0; return true }},
	}},
}

// whereFaults are those of WHERE; conditionFaults apply in a sub-query too.
var whereFaults = append([]fault{
	{"where.nested", (*faulter).wrongNested},
	{"where.nested", (*faulter).wrongNested},
	{"where.nested", (*faulter).wrongNested},
}, conditionFaults...)

var conditionFaults = []fault{
	{"where.column", (*faulter).wrongConditionColumn},
	{"where.comparison", (*faulter).wrongOperator},
	{"where.comparison", (*faulter).wrongOperator},
	{"where.comparison", (*faulter).wrongOperator},
	{"where.literal", (*faulter).wrongLiteral},
	{"where.connective", (*faulter).wrongConnective},
	{"where.drop", (*faulter).lostCondition},
}

// inventions add a clause that the question does not ask for.
var inventions = []fault{
	{"where.add", (*faulter).extraCondition},
	{"where.add", (*faulter).extraCondition},
	{"having.add", (*faulter).extraHaving},
	{"group.invent", (*faulter).inventedGroup},
	{"limit.add", (*faulter).extraLimit},
}

// inject puts one fault into a copy of q and returns it with the fault's name.
// Now and then the fault is an invented clause; otherwise its clause kind is
// drawn first, then the fault.
func (f *faulter) inject(q *Query) (*Query, string) {
	for {
		wrong, faults := q.Clone(), inventions
		if !chance(f.Rand, 0.1) {
			faults = f.clause(q).faults
		}
		chosen := pick(f.Rand, faults...)
		if chosen.apply(f, wrong) && wrong.SQL(Style{}) != q.SQL(Style{}) {
			return wrong, chosen.name
		}
	}
}

// clause draws a clause kind that q has.
func (f *faulter) clause(q *Query) clauseFaults {
	total := 0.0
	for _, c := range catalogue {
		if c.present(q) {
			total += c.weight
		}
	}
	draw := f.Float64() * total
	for _, c := range catalogue {
		if !c.present(q) {
			continue
		}
		if draw -= c.weight; draw < 0 {
			return c
		}
	}
	return catalogue[1] // rounding: every query has SELECT
}

// one puts one of the faults into q, a part of a larger query.
func (f *faulter) one(q *Query, faults []fault) bool {
	before := q.SQL(Style{})
	for _, i := range f.Perm(len(faults)) {
		if wrong := q.Clone(); faults[i].apply(f, wrong) && wrong.SQL(Style{}) != before {
			*q = *wrong
			return true
		}
	}
	return false
}

// sibling returns another column of c's table: mostly one that q uses elsewhere,
// if there is any, otherwise one of the same nature.
func (f *faulter) sibling(c Column, q *Query) (Column, bool) {
	t := f.schema.table(c.Table)
	if t == nil {
		return c, false
	}
	a := f.schema.attribute(c)
	var same, all, used []Column
	for _, other := range t.attributes(anyAttribute) {
		if other == c {
			continue
		}
		all = append(all, other)
		if b := f.schema.attribute(other); a != nil && a.numeric() == b.numeric() && (a.kind == date) == (b.kind == date) {
			same = append(same, other)
		}
		if mentions(q, other) {
			used = append(used, other)
		}
	}
	switch {
	case len(used) > 0 && chance(f.Rand, 0.65):
		return pick(f.Rand, used...), true
	case len(same) > 0:
		return pick(f.Rand, same...), true
	case len(all) > 0:
		return pick(f.Rand, all...), true
	}
	return c, false
}

func mentions(q *Query, c Column) bool {
	found := false
	q.ownTerms(func(t *Term) { found = found || t.Column == c })
	for _, k := range q.Group {
		found = found || k == c
	}
	return found
}

// otherThan draws an element of all that is not x.
func otherThan[T comparable](r *rand.Rand, x T, all ...T) T {
	for {
		if y := pick(r, all...); y != x {
			return y
		}
	}
}
