package solve

import "strings"

// similarity is 1 less the edit distance between two texts as a share of the longer
// one.
func similarity(a, b string) float64 {
	x, y := []rune(a), []rune(b)
	longest := max(len(x), len(y))
	if longest == 0 {
		return 1
	}
	return 1 - float64(editDistance(x, y))/float64(longest)
}

// editDistance is Levenshtein's.
func editDistance(x, y []rune) int {
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(y)]
}

// bestOf is the index of the one text that scores best, and at least least; -1 where
// there is none or the best are several.
func bestOf(texts []string, least float64, score func(string) float64) int {
	best, at, unique := least, -1, true
	for i, text := range texts {
		switch s := score(text); {
		case s > best || at < 0 && s == best:
			best, at, unique = s, i, true
		case s == best && at >= 0:
			unique = unique && text == texts[at]
		}
	}
	if !unique {
		return -1
	}
	return at
}

// plainName is a name without what generators spell differently: case, separators and
// the plural.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- ", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	if len(plain) > 3 {
		plain = strings.TrimSuffix(plain, "s")
	}
	return plain
}
