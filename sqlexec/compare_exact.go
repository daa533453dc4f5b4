package sqlexec

import "unicode/utf8"

// sameExactly compares rows by Python's equality, as bags or as lists.
func sameExactly(gold, pred [][]Value, ordered bool) bool {
	if len(gold) != len(pred) {
		return false
	}
	if ordered {
		var a, b []byte
		for i := range gold {
			a, b = appendRowKey(a[:0], gold[i]), appendRowKey(b[:0], pred[i])
			if string(a) != string(b) {
				return false
			}
		}
		return true
	}
	counts := make(map[string]int, len(gold))
	var key []byte
	for _, row := range gold {
		key = appendRowKey(key[:0], row)
		counts[string(key)]++
	}
	for _, row := range pred {
		key = appendRowKey(key[:0], row)
		if counts[string(key)] == 0 {
			return false
		}
		counts[string(key)]--
	}
	return true
}

// DistinctRows keeps the first of equal rows.
func DistinctRows(rows [][]Value) [][]Value {
	seen := make(map[string]bool, len(rows))
	var distinct [][]Value
	var key []byte
	for _, row := range rows {
		key = appendRowKey(key[:0], row)
		if !seen[string(key)] {
			seen[string(key)] = true
			distinct = append(distinct, row)
		}
	}
	return distinct
}

// Decodable reports that all texts are UTF-8: a Python program stops at one that is not.
func (r *Result) Decodable() bool {
	for _, row := range r.Rows {
		for _, v := range row {
			if s, ok := v.(string); ok && !utf8.ValidString(s) {
				return false
			}
		}
	}
	return true
}
