package sqlexec

import "strings"

// SurelyOthers reports that some row of one result equals none of the other, whatever
// collation and type the columns have: so the results differ, too, when each row is
// taken once. It gives up on floats.
func SurelyOthers(a, b Record) bool {
	x, okX := looseRows(a.Result())
	y, okY := looseRows(b.Result())
	if !okX || !okY || a[recordTruncated] != 0 || b[recordTruncated] != 0 {
		return false
	}
	for row := range x {
		if !y[row] {
			return true
		}
	}
	return len(x) != len(y)
}

// looseRows is the set of rows, texts without what collations pass over.
func looseRows(r *Result) (rows map[string]bool, ok bool) {
	rows = make(map[string]bool, len(r.Rows))
	var key []byte
	for _, row := range r.Rows {
		key = key[:0]
		for _, v := range row {
			switch cell := v.(type) {
			case float64:
				return nil, false
			case string:
				v = strings.TrimRight(strings.ToLower(cell), " ")
			}
			key = appendKey(key, v)
		}
		rows[string(key)] = true
	}
	return rows, true
}
