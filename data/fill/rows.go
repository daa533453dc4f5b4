package fill

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// nullShare is how often a cell that may be NULL is.
const nullShare = 0.04

// maxRefusals is how many rows of a table SQLite may refuse before the table counts
// as full: it has a key of few values, or a CHECK that hardly any row satisfies.
const maxRefusals = 100

// fillTable adds up to n rows. Where none is accepted, the error is the
// constraint that refused the last.
func (d *database) fillTable(t *table, n int, r *rand.Rand) (refused error) {
	sequences := make([][]any, len(t.columns))
	for i, c := range t.columns {
		if c.unique {
			sequences[i] = c.domain.root().sequence(r, n)
		}
	}
	refusals := 0
	for len(t.rows) < n && refusals < maxRefusals {
		row := make([]any, len(t.columns))
		set := make([]bool, len(t.columns))
		t.drawReferences(row, set, r)
		for i, c := range t.columns {
			if c.unique && !set[i] && c.dangling == "" && len(t.rows)+refusals < len(sequences[i]) {
				row[i], set[i] = sequences[i][len(t.rows)+refusals], true
			}
		}
		t.complete(row, set, r)
		if err := d.insert(t, row); err != nil {
			refused = err
			refusals++
		}
	}
	if len(t.rows) > 0 {
		return nil
	}
	return fmt.Errorf("table %s stays empty: %w", t.name, refused)
}

// drawReferences lets the row refer to existing rows, where the columns are not set
// yet. The first rows of a table are referred to more often and the last ones
// never, so that some have many children and some none.
func (t *table) drawReferences(row []any, set []bool, r *rand.Rand) {
	for _, ref := range t.refs {
		candidates := ref.parent.rows
		if slices.ContainsFunc(ref.columns, func(c int) bool { return set[c] }) {
			candidates = agreeing(candidates, ref, row, set)
		} else if t.mayBeNull(ref.columns) && chance(r, nullShare) {
			for _, c := range ref.columns {
				set[c] = true
			}
			continue
		}
		if len(candidates) == 0 {
			continue // mend finds a parent when there is one
		}
		n := len(candidates)
		if !slices.ContainsFunc(ref.columns, func(c int) bool { return t.columns[c].unique }) {
			n = max(n*4/5, 1)
		}
		parent := candidates[skewed(r, n)]
		for i, c := range ref.columns {
			if !t.columns[c].computed && t.columns[c].dangling == "" {
				row[c], set[c] = parent[ref.target[i]], true
			}
		}
	}
}

// agreeing are the parents that fit the columns that are set already.
func agreeing(parents [][]any, ref reference, row []any, set []bool) (fit [][]any) {
	for _, parent := range parents {
		fits := true
		for i, c := range ref.columns {
			fits = fits && (!set[c] || order(row[c], parent[ref.target[i]]) == 0)
		}
		if fits {
			fit = append(fit, parent)
		}
	}
	return fit
}

func (t *table) mayBeNull(columns []int) bool {
	return !slices.ContainsFunc(columns, func(c int) bool { return t.columns[c].required || t.columns[c].noNull })
}

// complete draws the cells that are not set.
func (t *table) complete(row []any, set []bool, r *rand.Rand) {
	for i, c := range t.columns {
		switch {
		case set[i] || c.computed || c.dangling != "":
		case c.unique:
			row[i] = c.domain.root().fresh(r)
		case t.mayBeNull([]int{i}) && chance(r, nullShare):
		default:
			row[i] = careless(c.domain.root().draw(r), r)
		}
		if t.strict || c.isRowID() {
			row[i] = c.typed(row[i], r)
		}
	}
}

// careless now and then writes a text in lower case.
func careless(v any, r *rand.Rand) any {
	if s, ok := v.(string); ok && chance(r, 0.02) {
		return strings.ToLower(s)
	}
	return v
}

// typed replaces a value that the column does not take: in a STRICT table one of
// another type, as a row id anything but an integer.
func (c *column) typed(v any, r *rand.Rand) any {
	v = coerce(v, c.affinity)
	_, isInteger := v.(int64)
	_, isText := v.(string)
	switch {
	case c.isRowID() && !isInteger:
		return nil // SQLite gives the next one
	case isText && c.affinity.IsNumber():
		return int64(1 + r.IntN(100))
	case v != nil && strings.EqualFold(c.declared, "BLOB"):
		return []byte(fmt.Sprint(v))
	}
	return v
}

// isRowID reports an INTEGER PRIMARY KEY, another name of the row's number.
func (c *column) isRowID() bool {
	return c.unique && strings.EqualFold(c.declared, "INTEGER") && len(c.table.primaryKey) == 1 &&
		c.table.columns[c.table.primaryKey[0]] == c
}

// inOrder sorts tables so that parents come before children, as far as cycles
// allow.
func inOrder(tables []*table) (sorted []*table) {
	visited := map[*table]bool{}
	var visit func(t *table)
	visit = func(t *table) {
		if visited[t] {
			return
		}
		visited[t] = true
		for _, ref := range t.refs {
			visit(ref.parent)
		}
		sorted = append(sorted, t)
	}
	for _, t := range tables {
		visit(t)
	}
	return sorted
}
