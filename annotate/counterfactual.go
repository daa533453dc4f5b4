package annotate

import (
	"context"
	"slices"

	"caper/data"
	"caper/sql"
)

// Operators of counterfactual tuples.
const (
	operatorSingle  = "single"  // repairing this clause, and no other one alone, makes the query correct
	operatorFirst   = "first"   // the first divergent clause, the rest of the query taken from gold
	operatorCascade = "cascade" // neither; the repair begins at a later divergent clause
)

// intervene finds the clause at which a failing query went wrong by repairing it
// until it is correct, and returns the tuples for that clause (caper.md 1.4.4).
//
// Each divergent clause is first repaired alone, the prediction's other clauses
// kept; if exactly one such repair works, that is the clause. If none does, the
// same is tried with gold restated in the prediction's construction. Otherwise it
// is the first divergent clause whose prefix gold, or gold restated, can complete.
// A clause that says what gold's says is never the one.
func (o Options) intervene(ctx context.Context, base data.Tuple, wrong, gold *statement, e *executor, out *outcome) ([]preference, error) {
	r := newRepair(wrong, gold)
	divergent := r.divergent()
	if len(divergent) == 0 {
		out.reason = NoDivergence
		return nil, nil
	}
	working, err := singleRepairs(ctx, r, e)
	if err != nil {
		return nil, err
	}
	out.singles = len(working)
	if len(working) == 1 {
		single := working[0]
		if pairs := o.repaired(base, single, operatorSingle); len(pairs) > 0 {
			out.restated = single.repair.gold != gold
			out.agrees = single.clause() == (repaired{repair: r, slot: divergent[0]}).clause()
			return pairs, nil
		}
	}
	pairs, err := o.completed(ctx, base, r, divergent, e)
	if len(pairs) == 0 {
		out.reason = Unrepaired
	}
	return pairs, err
}

// completed makes the tuples of the first divergent clause from which gold
// completes the wrong query, else from which gold restated does: ahead of it may
// stand a bare column that gold's tables make ambiguous.
func (o Options) completed(ctx context.Context, base data.Tuple, r *repair, divergent []int, e *executor) ([]preference, error) {
	pairs, err := o.completedBy(ctx, base, r, r, divergent, e)
	if err != nil || len(pairs) > 0 {
		return pairs, err
	}
	golds, err := thatHold(ctx, completions(r.gold, r.wrong), e)
	if err != nil {
		return nil, err
	}
	for _, g := range golds {
		pairs, err := o.completedBy(ctx, base, r, newRepair(r.wrong, g), divergent, e)
		if err != nil || len(pairs) > 0 {
			return pairs, err
		}
	}
	return nil, nil
}

// completedBy tries each of r's divergent clauses in the repair by, whose gold may
// be another wording.
func (o Options) completedBy(ctx context.Context, base data.Tuple, r, by *repair, divergent []int, e *executor) ([]preference, error) {
	for i, k := range divergent {
		same := slices.IndexFunc(by.slots, func(s slot) bool { return s.kind == r.slots[k].kind && s.wrong == r.slots[k].wrong })
		if same < 0 {
			continue // the restatement does without that clause too
		}
		text := by.from(same)
		ok, err := e.correct(ctx, text)
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
		if pairs := o.repaired(base, repaired{by, same, text}, operator); len(pairs) > 0 {
			return pairs, nil
		}
	}
	return nil, nil
}

// repaired is a correct text that differs from the wrong query from slot on.
type repaired struct {
	repair *repair
	slot   int
	text   string
}

// clause names the clause of the wrong query that was repaired, by its index, or
// the kind that it lacks.
func (r repaired) clause() slot {
	s := r.repair.slots[r.slot]
	return slot{kind: s.kind, wrong: s.wrong}
}

// singleRepairs lists the repairs of one clause of a wrong query that make it
// correct, each clause once: those by gold as it stands or, where there are none,
// by gold restated.
func singleRepairs(ctx context.Context, r *repair, e *executor) ([]repaired, error) {
	working, err := r.singles(ctx, e)
	if err != nil || len(working) > 0 {
		return working, err
	}
	return restatedSingles(ctx, r.wrong, r.gold, e)
}

// singles lists the repairs of one clause alone that make the query correct.
func (r *repair) singles(ctx context.Context, e *executor) ([]repaired, error) {
	divergent := r.divergent()
	texts := make([]string, len(divergent))
	for i, k := range divergent {
		texts[i] = r.only(k)
	}
	e.foresee(ctx, e.candidates, texts)
	var working []repaired
	for i, k := range divergent {
		ok, err := e.correct(ctx, texts[i])
		if err != nil {
			return nil, err
		}
		if ok {
			working = append(working, repaired{r, k, texts[i]})
		}
	}
	return working, nil
}

// restatedSingles lists the same for gold's restatements, of each clause the first
// repair that works.
func restatedSingles(ctx context.Context, wrong, gold *statement, e *executor) ([]repaired, error) {
	var working []repaired
	found := make(map[slot]bool)
	golds, err := thatHold(ctx, restatements(gold, wrong), e)
	if err != nil {
		return nil, err
	}
	for _, g := range golds {
		singles, err := newRepair(wrong, g).singles(ctx, e)
		if err != nil {
			return nil, err
		}
		for _, s := range singles {
			if !found[s.clause()] {
				found[s.clause()] = true
				working = append(working, s)
			}
		}
	}
	return working, nil
}

// thatHold are the restatements that give gold's result; others are none.
func thatHold(ctx context.Context, restatements []*statement, e *executor) ([]*statement, error) {
	texts := make([]string, len(restatements))
	for i, g := range restatements {
		texts[i] = g.text
	}
	e.foresee(ctx, e.candidates, texts)
	var hold []*statement
	for _, g := range restatements {
		ok, err := e.correct(ctx, g.text)
		if err != nil {
			return nil, err
		}
		if ok {
			hold = append(hold, g)
		}
	}
	return hold, nil
}

// repaired makes the tuples of a repair.
func (o Options) repaired(base data.Tuple, found repaired, operator string) []preference {
	r, k, text := found.repair, found.slot, found.text
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
