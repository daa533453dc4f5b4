package sqlexec

import (
	"regexp"
	"strings"
)

// RewritePrediction returns the text that runs in place of a prediction.
func (q Quirks) RewritePrediction(query string) string {
	if q.Has(ValueWord) {
		query = strings.ReplaceAll(query, "value", "1")
	}
	return q.Rewrite(query)
}

var currentYear = regexp.MustCompile(`(?i)YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*`)

// Rewrite returns the text that runs in place of a query, gold or predicted. The
// evaluator joins operators and sets the year inside quotes too.
func (q Quirks) Rewrite(query string) string {
	if q.Has(OperatorsJoined) {
		for _, sign := range []string{">", "<", "!"} {
			query = strings.ReplaceAll(query, sign+" =", sign+"=")
		}
	}
	if q.Has(CurrentYear) && mentions(query, "curdate") {
		query = currentYear.ReplaceAllString(query, "2020")
	}
	if q.Has(FirstStatement) && strings.Contains(query, ";") {
		query = firstStatement(query)
	}
	if q.Has(DistinctStripped) && mentions(query, "distinct") {
		query = stripDistinct(query)
	}
	return query
}

// mentions looks for a word in small letters, whatever the case in the query: a
// quick look that spares most queries the regular expression.
func mentions(query, word string) bool {
	for i := 0; i+len(word) <= len(query); i++ {
		if query[i]|0x20 == word[0] && strings.EqualFold(query[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// stripDistinct removes the word DISTINCT outside quotes and comments.
func stripDistinct(query string) string {
	const word = "distinct"
	var out strings.Builder
	kept := 0 // what is ahead has been written
	for i := 0; i < len(query); {
		n, _ := verbatimAt(query[i:])
		switch end := i + len(word); {
		case n > 0:
			i += n
		case end <= len(query) && strings.EqualFold(query[i:end], word) && (i == 0 || !isWordByte(query[i-1])) &&
			(end == len(query) || !isWordByte(query[end])):
			out.WriteString(query[kept:i])
			i, kept = end, end
		default:
			i++
		}
	}
	out.WriteString(query[kept:])
	return out.String()
}

func isWordByte(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || '0' <= c && c <= '9'
}

// firstStatement cuts behind the first semicolon outside quotes and brackets.
func firstStatement(query string) string {
	depth := 0
	for i := 0; i < len(query); i++ {
		if n, _ := verbatimAt(query[i:]); n > 0 {
			i += n - 1
			continue
		}
		switch query[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ';':
			if depth <= 0 {
				return query[:i+1]
			}
		}
	}
	return query
}
