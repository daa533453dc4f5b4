package exactmatch

// Hardness is how hard a question is, by the parts of its gold query.
type Hardness string

const (
	Easy   Hardness = "easy"
	Medium Hardness = "medium"
	Hard   Hardness = "hard"
	Extra  Hardness = "extra"
)

// Levels are all of them, in order.
var Levels = []Hardness{Easy, Medium, Hard, Extra}

// Hardness counts clauses and joins, nested queries, and clauses with more than one
// part, as the official script does.
func (q *Query) Hardness() Hardness {
	clauses, nested, others := q.clauseCount(), q.nestedCount(), q.othersCount()
	switch {
	case clauses <= 1 && others == 0 && nested == 0:
		return Easy
	case nested == 0 && (clauses <= 1 && others <= 2 || clauses <= 2 && others < 2):
		return Medium
	case nested == 0 && (clauses <= 2 && others > 2 || clauses == 3 && others <= 2),
		nested <= 1 && clauses <= 1 && others == 0:
		return Hard
	}
	return Extra
}

// clauseCount counts WHERE, GROUP BY, ORDER BY, LIMIT, joins, OR and LIKE.
func (q *Query) clauseCount() int {
	n := count(q.Where.length() > 0, len(q.GroupBy) > 0, q.OrderBy != nil, q.Limit != "")
	n += max(len(q.From.Tables)-1, 0)
	for _, c := range q.conditions() {
		n += c.or()
	}
	for _, c := range q.every() {
		n += count(c.Operator == "like")
	}
	return n
}

// nestedCount counts queries in conditions and behind set operators.
func (q *Query) nestedCount() int {
	n := count(q.Operand != nil)
	for _, c := range q.every() {
		for _, v := range c.Values {
			n += count(v != nil && v.Query != nil)
		}
	}
	return n
}

// othersCount counts what there is more than one of. NOT counts as an aggregate,
// and so does each word between the conditions of HAVING: the official script reads
// "is not none" off whatever stands first in a tuple.
func (q *Query) othersCount() int {
	aggregated := 0
	for _, i := range q.Select {
		aggregated += count(i.Aggregate != none)
	}
	for _, c := range q.Where.List {
		aggregated += count(c.Not)
	}
	for _, c := range q.GroupBy {
		aggregated += count(c.Aggregate != none)
	}
	if q.OrderBy != nil {
		for _, e := range q.OrderBy.Items {
			aggregated += count(e.Left.Aggregate != none, e.Binary && e.Right.Aggregate != none)
		}
	}
	for _, c := range q.Having.List {
		aggregated += count(c.Not)
	}
	for _, w := range q.Having.Words {
		aggregated += count(w.Condition == nil || w.Condition.Not)
	}
	return count(aggregated > 1, len(q.Select) > 1, q.Where.length() > 1, len(q.GroupBy) > 1)
}

func count(facts ...bool) (n int) {
	for _, f := range facts {
		if f {
			n++
		}
	}
	return n
}
