package sample

import "math/rand/v2"

// Rewrites print a query another way without changing what it returns. Right
// and wrong rollouts get them alike, so that a style never tells a fault.

// restyle draws a writer's style; most keep the gold query's.
func restyle(r *rand.Rand, style Style) Style {
	if !chance(r, 0.1) {
		return style
	}
	switch r.IntN(4) {
	case 0:
		style.Aliases = !style.Aliases
	case 1:
		style.Flip = true
	case 2:
		style.Inner = true
	default:
		style.Lower = true
	}
	return style
}

// rewrite changes the form of q, in place.
func rewrite(r *rand.Rand, q *Query) {
	forms := []func(*Query) bool{existsForIn, boundsForBetween, equalsForIn, swappedOperands}
	for _, i := range r.Perm(len(forms)) {
		if forms[i](q) {
			return
		}
	}
}

// existsForIn swaps IN (SELECT ...) and EXISTS. Keys are never NULL here, so
// the negations agree too.
func existsForIn(q *Query) bool {
	swap := map[string]string{"in": "exists", "not in": "not exists", "exists": "in", "not exists": "not in"}
	for i := range q.Where {
		if c := &q.Where[i]; c.Query != nil && swap[c.Op] != "" {
			c.Op = swap[c.Op]
			return true
		}
	}
	return false
}

// boundsForBetween writes x BETWEEN a AND b as x >= a AND x <= b.
func boundsForBetween(q *Query) bool {
	for i, c := range q.Where {
		if c.Op != "between" || q.Or {
			continue
		}
		low, high := c, c
		low.Op, low.Values = ">=", c.Values[:1]
		high.Op, high.Values = "<=", c.Values[1:]
		rest := append([]Condition{low, high}, q.Where[i+1:]...)
		q.Where = append(q.Where[:i], rest...)
		return true
	}
	return false
}

// equalsForIn writes x IN (a, b) as x = a OR x = b where nothing else stands.
func equalsForIn(q *Query) bool {
	if len(q.Where) != 1 || q.Where[0].Op != "in" || q.Where[0].Query != nil {
		return false
	}
	c := q.Where[0]
	q.Where, q.Or = nil, len(c.Values) > 1
	for _, v := range c.Values {
		q.Where = append(q.Where, Condition{Left: c.Left, Op: "=", Values: []string{v}})
	}
	return true
}

// swappedOperands swaps the operands of AND or OR.
func swappedOperands(q *Query) bool {
	if len(q.Where) != 2 {
		return false
	}
	q.Where[0], q.Where[1] = q.Where[1], q.Where[0]
	return true
}

// Rewritten is a copy of q in another form, where there is one: it returns the same.
func (q *Query) Rewritten(r *rand.Rand) *Query {
	c := q.Clone()
	rewrite(r, c)
	return c
}
