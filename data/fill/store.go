package fill

import "slices"

// store puts the drafts in, all or, where a constraint refuses one, none.
func (w *witness) store(d *database) error {
	if err := d.exec("SAVEPOINT witness"); err != nil {
		return err
	}
	for _, draft := range w.drafts {
		if w.storeDraft(d, draft) {
			continue
		}
		if err := d.exec("ROLLBACK TO witness"); err != nil {
			return err
		}
		for _, draft := range w.drafts {
			if err := d.load(draft.table); err != nil {
				return err
			}
		}
		break
	}
	return d.exec("RELEASE witness")
}

// storeDraft inserts the row, or changes the row that has its key already.
func (w *witness) storeDraft(d *database, draft *draft) bool {
	t := draft.table
	if draft.referred || t.kept {
		if draft.existing(nil) != nil {
			return true
		} else if t.kept {
			return false
		}
	}
	for range 5 {
		row, set := make([]any, len(t.columns)), make([]bool, len(t.columns))
		for i, u := range draft.cells {
			if u != nil {
				row[i], set[i] = draft.value(i), true
			}
		}
		t.drawReferences(row, set, w.r)
		t.complete(row, set, w.r)
		if d.insert(t, row) == nil {
			return true
		}
	}
	for _, key := range t.keys {
		if row := draft.existing(key); row != nil {
			return w.change(d, draft, row, key)
		}
	}
	return false
}

// value is what cell i, which is not nil, will hold.
func (d *draft) value(i int) any {
	return coerce(d.cells[i].root().value, d.table.columns[i].affinity)
}

// existing is a row that has the draft's values in the columns of the key, or, for
// a nil key, in all columns; nil if there is none.
func (d *draft) existing(key []int) []any {
	for _, row := range d.table.rows {
		fits := true
		for i, u := range d.cells {
			if key == nil && u == nil || key != nil && !slices.Contains(key, i) {
				continue
			}
			fits = fits && u != nil && order(d.value(i), row[i]) == 0
		}
		if fits {
			return row
		}
	}
	return nil
}

// change sets the other columns that the draft speaks of.
func (w *witness) change(d *database, draft *draft, row []any, key []int) bool {
	var columns []int
	var values []any
	for i, u := range draft.cells {
		if u != nil && !slices.Contains(key, i) && order(draft.value(i), row[i]) != 0 {
			columns, values = append(columns, i), append(values, draft.value(i))
		}
	}
	if len(columns) == 0 {
		return true
	}
	if d.update(draft.table, row, columns, values) != nil {
		return false
	}
	return d.load(draft.table) == nil
}
