package sample

import "caper/sql"

// unsaid names a part of a query that its question would not speak of, or not in a way
// that tells what is meant; "" where the question says everything. The generator composes
// no such queries.
func unsaid(q *Query, schema *sql.Schema) string {
	switch {
	case q.With != nil:
		if len(q.With.Select) != 1 || q.With.Select[0].Column.Name != "*" || !isPlain(q.With) || q.Set != "" {
			return "such a common table expression"
		}
		rest := *q
		rest.With, rest.Table = nil, q.Subject
		if what := unsaidConditions(q.With, schema); what != "" {
			return what
		}
		return unsaid(&rest, schema)
	case q.Derived != nil:
		return unsaidTally(q, schema)
	case q.Limit > 0 && len(q.Order) == 0 && len(q.Group) > 0:
		return "the first of groups in no order"
	case len(q.Group) > 0:
		return unsaidGroups(q, schema)
	case len(q.Having) > 0:
		return "HAVING without groups"
	case q.Select[0].Func != "":
		for _, t := range q.Select {
			if t.Func == "" {
				return "a column beside an aggregate"
			}
		}
		if q.Distinct || len(q.Order) > 0 || q.Limit > 0 || q.Set != "" {
			return "an order, a limit or a set operation of one row of aggregates"
		}
	default:
		for _, t := range q.Select {
			if t.Func != "" || t.Column.Name == "*" || t.Alias != "" {
				return "an aggregate beside a column, a star or an alias"
			}
		}
	}
	if q.Set != "" && (!isPlain(q.Right) || q.Right.Select[0].Func != "" || q.Right.Distinct || q.Distinct) {
		return "such a set operation"
	}
	if q.Set != "" {
		if what := unsaid(q.Right, schema); what != "" {
			return what
		}
	}
	return unsaidConditions(q, schema)
}

// isPlain reports a query of rows, without nesting in FROM.
func isPlain(q *Query) bool {
	return q.With == nil && q.Derived == nil && len(q.Group) == 0 && len(q.Having) == 0 && q.Set == ""
}

func unsaidGroups(q *Query, schema *sql.Schema) string {
	if q.Distinct || q.Set != "" {
		return "DISTINCT or a set operation of groups"
	}
	shown := map[Column]bool{}
	aggregates := 0
	for _, t := range q.Select {
		if t.plain() {
			shown[t.Column] = true
		} else if t.Func != "" {
			aggregates++
		}
	}
	for _, key := range q.Group {
		if !shown[key] {
			return "groups without their keys"
		}
	}
	if len(shown) != len(q.Group) || len(shown)+aggregates != len(q.Select) || aggregates == 0 {
		return "groups without an aggregate, or with other columns"
	}
	for _, c := range q.Having {
		if c.Left.Func == "" || c.Query != nil {
			return "such a condition on groups"
		}
	}
	return unsaidConditions(q, schema)
}

// unsaidTally is of a query over a derived table of groups.
func unsaidTally(q *Query, schema *sql.Schema) string {
	inner := q.Derived
	isTally := func(t Term) bool { return t.Column.Table == "" && t.Column.Name == TallyName }
	if len(inner.Select) != 2 || len(inner.Group) != 1 || len(inner.Having) > 0 || len(inner.Order) > 0 || inner.Limit > 0 || inner.Joins != nil ||
		inner.Select[1].Alias != TallyName || len(q.Select) != 1 || q.Distinct || q.Set != "" || len(q.Order) > 0 || q.Limit > 0 || len(q.Group) > 0 {
		return "such a sub-query in FROM"
	}
	t := q.Select[0]
	overall := isTally(t) && len(q.Where) == 0 && (t.Func == "avg" || t.Func == "max" || t.Func == "min")
	filtered := sameTerm(t, inner.Select[0]) && len(q.Where) == 1 && isTally(q.Where[0].Left) && q.Where[0].Left.plain() && q.Where[0].Query == nil
	if !overall && !filtered {
		return "what is made of a sub-query in FROM"
	}
	return unsaidGroups(inner, schema)
}

// unsaidConditions is of WHERE and of the tables that a query reads: each must be spoken
// of, but those between two others.
func unsaidConditions(q *Query, schema *sql.Schema) string {
	for _, c := range q.Where {
		if c.Left.Func != "" {
			return "an aggregate in WHERE"
		}
		if c.Query == nil {
			continue
		}
		inner := c.Query
		if len(q.Joins) > 0 && q.Joins[0].Kind == "LEFT JOIN" {
			return "which table of a LEFT JOIN a sub-query is about"
		}
		if !isPlain(inner) || len(inner.Joins) > 0 || len(inner.Select) != 1 || inner.Distinct || len(inner.Order) > 0 || inner.Limit > 0 {
			return "such a sub-query"
		}
		if inner.Select[0].Func == "" {
			own, other := inner.Select[0].Column, c.Left.Column
			if !c.Left.plain() || !inner.Select[0].plain() || other.Table != q.Subject || !refers(schema, own, other) && !refers(schema, other, own) {
				return "a sub-query of what no foreign key ties to the subject"
			}
			if comparisons[c.Op] != nil && c.Op != "in" && c.Op != "not in" {
				return "a comparison with the rows of a sub-query"
			}
		}
		if what := unsaidConditions(inner, schema); what != "" {
			return what
		}
	}
	spoken := map[string]bool{q.Subject: true}
	q.ownTerms(func(t *Term) { spoken[t.Column.Table] = true })
	for _, key := range q.Group {
		spoken[key.Table] = true
	}
	for _, t := range q.tables() {
		between := len(q.Joins) == 1 && q.Joins[0].Kind == "LEFT JOIN"
		for _, k := range schema.ForeignKeys {
			between = between || k.Table == t && q.reads(k.RefTable)
		}
		if !spoken[t] && !between {
			return "why " + t + " is joined"
		}
	}
	return ""
}
