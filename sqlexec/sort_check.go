package sqlexec

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// passesSortCheck is the test-suite evaluator's quick rejection: the cells of each row
// are sorted by printed form and type, and the rows compared so. It refuses equal
// tables in which 1 meets 1.0 and the two sort differently among their row's cells,
// and nothing else, so that tables without such floats pass.
func passesSortCheck(gold, pred [][]Value, ordered bool) bool {
	if !hasWholeFloat(gold) && !hasWholeFloat(pred) {
		return true
	}
	if ordered {
		return slices.EqualFunc(gold, pred, func(a, b []Value) bool {
			return string(unorderedRowKey(a)) == string(unorderedRowKey(b))
		})
	}
	return containsRows(gold, pred) && containsRows(pred, gold)
}

// hasWholeFloat reports whether some cell is a float that an integer equals.
func hasWholeFloat(rows [][]Value) bool {
	for _, row := range rows {
		for _, v := range row {
			if f, ok := v.(float64); ok {
				if _, whole := exactInt(f); whole {
					return true
				}
			}
		}
	}
	return false
}

func containsRows(a, b [][]Value) bool {
	have := map[string]bool{}
	for _, row := range a {
		have[string(unorderedRowKey(row))] = true
	}
	return !slices.ContainsFunc(b, func(row []Value) bool { return !have[string(unorderedRowKey(row))] })
}

func unorderedRowKey(row []Value) []byte {
	type printed struct {
		text string
		v    Value
	}
	cells := make([]printed, len(row))
	for i, v := range row {
		cells[i] = printed{pythonPrint(v), v}
	}
	slices.SortStableFunc(cells, func(a, b printed) int { return strings.Compare(a.text, b.text) })
	var key []byte
	for _, c := range cells {
		key = appendKey(key, c.v)
	}
	return key
}

// droppingBadBytes decodes texts as the evaluator does: bytes that are not UTF-8
// vanish.
func droppingBadBytes(rows [][]Value) [][]Value {
	out := rows
	for i, row := range rows {
		for j, v := range row {
			s, ok := v.(string)
			if !ok || utf8.ValidString(s) {
				continue
			}
			if &out[0] == &rows[0] {
				out = slices.Clone(rows)
			}
			if &out[i][0] == &row[0] {
				out[i] = slices.Clone(row)
			}
			out[i][j] = strings.ToValidUTF8(s, "")
		}
	}
	return out
}
