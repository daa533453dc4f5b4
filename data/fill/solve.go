package fill

import (
	"slices"

	"caper/sql"
)

// solve gives every unknown a value such that all restrictions hold, and reports
// whether that was possible.
func (w *witness) solve() bool {
	w.addReferred()
	w.mergeKeys()
	for _, u := range w.unknowns {
		if u.same == nil && u.known {
			u.settle(u.value)
		}
	}
	for _, u := range w.unknowns {
		if u.same == nil && !u.known && len(u.columns) > 0 && !w.choose(u) {
			return false
		}
	}
	return w.holds()
}

// addReferred drafts the rows that drafts refer to by cells that the query speaks
// of, or that no two rows share. Other cells refer to any row.
func (w *witness) addReferred() {
	for i := 0; i < len(w.drafts) && len(w.drafts) < maxDrafts; i++ {
		d := w.drafts[i]
		for _, ref := range d.table.refs {
			for _, c := range ref.columns {
				if d.table.columns[c].unique {
					w.cell(d, c)
				}
			}
			if slices.ContainsFunc(ref.columns, func(c int) bool { return d.cells[c] == nil }) || w.drafted(d, ref) {
				continue
			}
			parent := w.draft(ref.parent)
			parent.referred = true
			for j, c := range ref.columns {
				unify(d.cells[c], w.cell(parent, ref.target[j]))
			}
		}
	}
}

// drafted reports that the row that d refers to is in the witness, or is NULL.
func (w *witness) drafted(d *draft, ref reference) bool {
	if u := d.cells[ref.columns[0]].root(); u.known && u.value == nil {
		return true
	}
	return slices.ContainsFunc(w.drafts, func(parent *draft) bool {
		if parent.table != ref.parent {
			return false
		}
		for j, c := range ref.columns {
			if target := parent.cells[ref.target[j]]; target == nil || target.root() != d.cells[c].root() {
				return false
			}
		}
		return true
	})
}

// mergeKeys makes drafts one row where they share a key.
func (w *witness) mergeKeys() {
	for i := 0; i < len(w.drafts); i++ {
		for j := i + 1; j < len(w.drafts); j++ {
			a, b := w.drafts[i], w.drafts[j]
			if a.table != b.table || !slices.ContainsFunc(a.table.keys, func(key []int) bool { return sameKey(a, b, key) }) {
				continue
			}
			for c := range a.cells {
				if a.cells[c] == nil {
					a.cells[c] = b.cells[c]
				}
				unify(a.cells[c], b.cells[c])
			}
			a.referred = a.referred && b.referred
			w.drafts = slices.Delete(w.drafts, j, j+1)
			i, j = -1, len(w.drafts) // what became one may share further keys
		}
	}
}

func sameKey(a, b *draft, key []int) bool {
	for _, c := range key {
		if a.cells[c] == nil || b.cells[c] == nil {
			return false
		}
		x, y := a.cells[c].root(), b.cells[c].root()
		if x != y && !(x.known && y.known && x.value != nil && order(x.value, y.value) == 0) {
			return false
		}
	}
	return true
}

// settle fixes a value, as the columns will store it.
func (u *unknown) settle(v any) {
	if len(u.columns) > 0 {
		v = coerce(v, u.columns[0].affinity)
	}
	u.value, u.known = v, true
}

// choose draws candidates until one satisfies the restrictions against the values
// that are known so far.
func (w *witness) choose(u *unknown) bool {
	for _, v := range w.candidates(u) {
		u.settle(v)
		if w.holds() {
			return true
		}
	}
	u.known = false
	return false
}

// candidates lists values to try: new ones for keys and where the query looks for
// what is nowhere else, those that the restrictions suggest, then what the column
// holds anyway.
func (w *witness) candidates(u *unknown) (values []any) {
	domain := u.columns[0].domain.root()
	isNew := u.fresh || slices.ContainsFunc(u.columns, func(c *column) bool { return c.unique })
	if isNew {
		for range 8 {
			values = append(values, domain.fresh(w.r))
		}
	}
	for _, r := range w.restrictions {
		left, right := r.left.root(), r.right.root()
		switch {
		case left == u && r.part != nil:
			values = append(values, domain.literals...)
		case left == u && right.known:
			values = append(values, suggestions(r.operator, right.value)...)
		case right == u && left.known && r.part == nil:
			values = append(values, suggestions(mirrored[r.operator], left.value)...)
		}
	}
	if !isNew {
		for range 20 {
			values = append(values, domain.draw(w.r))
		}
		for range 4 {
			values = append(values, domain.fresh(w.r))
		}
	}
	return values
}

// mirrored gives the comparison with its sides exchanged.
var mirrored = map[string]string{"!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// suggestions are values v such that `v operator bound` holds.
func suggestions(operator string, bound any) []any {
	switch operator {
	case "<":
		return []any{before(bound)}
	case "<=":
		return []any{bound, before(bound)}
	case ">":
		return []any{after(bound)}
	case ">=":
		return []any{bound, after(bound)}
	case "!=":
		return []any{after(bound)}
	case "LIKE":
		if pattern, ok := bound.(string); ok {
			return instances(pattern)
		}
	}
	return nil
}

// holds reports that all restrictions between known values are satisfied. NULL
// satisfies none.
func (w *witness) holds() bool {
	for _, r := range w.restrictions {
		left, right := r.left.root(), r.right.root()
		if !left.known || !right.known {
			continue
		}
		a, b := left.value, right.value
		if r.part != nil {
			a = r.part.of(a)
		}
		if a == nil || b == nil {
			return false
		}
		if r.part != nil {
			b = coerce(b, sql.AffinityText)
		} else if len(left.columns) > 0 {
			b = coerce(b, left.columns[0].affinity)
		} else if len(right.columns) > 0 {
			a = coerce(a, right.columns[0].affinity)
		}
		if !satisfied(r.operator, a, b) {
			return false
		}
	}
	return true
}

func satisfied(operator string, a, b any) bool {
	c := order(a, b)
	switch operator {
	case "=":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	}
	text, _ := coerce(a, sql.AffinityText).(string)
	pattern, _ := coerce(b, sql.AffinityText).(string)
	return len(pattern) <= maxPattern && like(pattern, text) == (operator == "LIKE")
}
