package annotate

import (
	"context"

	"caper/data"
	"caper/sql"
)

// Operators of counterfactual tuples.
const (
	operatorSingle  = "single"  // repairing this clause, and no other one alone, makes the query correct
	operatorFirst   = "first"   // the first divergent clause, the rest of the query taken from gold
	operatorCascade = "cascade" // neither; the repair had to begin at another clause
)

// intervene finds the clause at which a failing query went wrong by repairing it
// until it is correct, and returns the tuples for that clause (caper.md 1.4.4).
//
// Each divergent clause is first repaired alone, the prediction's other clauses
// kept; if exactly one such repair works, that is the clause. Otherwise it is
// the first divergent clause whose prefix gold can complete.
func (o Options) intervene(ctx context.Context, base data.Tuple, wrong, gold *statement, e *executor, out *outcome) ([]preference, error) {
	r := newRepair(wrong, gold)
	divergent := r.divergent()
	if len(divergent) == 0 {
		out.reason = NoDivergence
		return nil, nil
	}
	passing := -1
	passed := 0
	for _, k := range divergent {
		ok, err := e.correct(ctx, r.only(k))
		if err != nil {
			return nil, err
		}
		if ok {
			passing, passed = k, passed+1
		}
	}
	if passed == 1 {
		if pairs := o.repaired(base, r, passing, r.only(passing), operatorSingle); len(pairs) > 0 {
			return pairs, nil
		}
	}
	for i, k := range r.starts(divergent) {
		ok, err := e.correct(ctx, r.from(k))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		operator := operatorFirst
		if i > 0 {
			operator = operatorCascade
		}
		if pairs := o.repaired(base, r, k, r.from(k), operator); len(pairs) > 0 {
			return pairs, nil
		}
	}
	out.reason = Unrepaired
	return nil, nil
}

// repaired makes the tuples for slot k of a repair whose correct text is given.
func (o Options) repaired(base data.Tuple, r *repair, k int, text, operator string) []preference {
	wrong := r.wrong
	f := fault{source: sourceCounterfactual, operator: operator}
	slot := r.slots[k]
	offset := r.offset(k)
	if offset == len(r.trimmed) && slot.wrong < 0 {
		// The missing clause would stand before a closing semicolon.
		trimmed, ok := parse(r.trimmed, wrong.schema, o.Granularity)
		if !ok {
			return nil
		}
		wrong = trimmed
	}
	correct, ok := parse(text, wrong.schema, o.Granularity)
	if !ok || len(text) < offset || text[:offset] != wrong.text[:offset] {
		return nil
	}
	switch {
	case slot.wrong < 0:
		f.missing = true
		f.root = missingClause(r.gold.units[slot.gold].node.Kind, wrong.tree, offset)
	case slot.gold < 0:
		f.root = wrong.units[slot.wrong].node
	default:
		index := r.indexInRepair(k)
		f.root = rootCause(wrong, correct, slot.wrong, index)
	}
	return o.pairs(base, correct, wrong, f)
}

// rootCause is v*: the node of the wrong query's clause i that the cheapest edit
// script towards the correct query's clause j touches; of several nodes their
// lowest common ancestor (caper.md 1.4.4, steps 6 and 7).
func rootCause(wrong, correct *statement, i, j int) *sql.Node {
	clause := wrong.units[i].node
	a, b := wrong.canonicalOf(clause), correct.canonicalOf(correct.units[j].node)
	if a == nil || b == nil {
		return clause
	}
	_, script := sql.Distance(a, b)
	var touched *sql.Node
	for _, edit := range script {
		switch {
		case edit.A == nil:
			return clause
		case touched == nil:
			touched = edit.A
		default:
			touched = commonAncestor(touched, edit.A)
		}
	}
	for ; touched != nil && touched != a.Parent; touched = touched.Parent {
		if origin := touched.Origin; origin != nil && !isBareBlock(origin) && isWithin(origin, clause) {
			return origin
		}
	}
	return clause
}

// isBareBlock reports that n is a block that is no clause by itself.
func isBareBlock(n *sql.Node) bool { return n.IsBlock() && n.Kind != sql.Values }

// isWithin reports that n is top or below it.
func isWithin(n, top *sql.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == top {
			return true
		}
	}
	return false
}

// commonAncestor is the lowest node above or equal to both.
func commonAncestor(a, b *sql.Node) *sql.Node {
	for ; a != nil; a = a.Parent {
		if isWithin(b, a) {
			return a
		}
	}
	return nil
}
