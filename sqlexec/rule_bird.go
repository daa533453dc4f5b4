package sqlexec

import "unicode/utf8"

// sameSets is BIRD's set(gold_rows) == set(predicted_rows).
func sameSets(gold, pred *Result) bool {
	if !decodable(gold) || !decodable(pred) {
		return false
	}
	goldRows := map[string]bool{} // row to "pred has it too"
	var key []byte
	for _, row := range gold.Rows {
		key = appendRowKey(key[:0], row)
		if _, ok := goldRows[string(key)]; !ok {
			goldRows[string(key)] = false
		}
	}
	found := 0
	for _, row := range pred.Rows {
		key = appendRowKey(key[:0], row)
		seen, ok := goldRows[string(key)]
		if !ok {
			return false
		}
		if !seen {
			goldRows[string(key)] = true
			found++
		}
	}
	return found == len(goldRows)
}

// decodable reports that all texts are UTF-8: the evaluator stops at one that is not.
func decodable(r *Result) bool {
	for _, row := range r.Rows {
		for _, v := range row {
			if s, ok := v.(string); ok && !utf8.ValidString(s) {
				return false
			}
		}
	}
	return true
}
