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

var (
	joinOperators = strings.NewReplacer("> =", ">=", "< =", "<=", "! =", "!=")
	currentYear   = regexp.MustCompile(`(?i)YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*`)
	distinct      = regexp.MustCompile(`(?i)\bDISTINCT\b`)
)

// Rewrite returns the text that runs in place of a query, gold or predicted. The
// evaluator joins operators and sets the year inside quotes too.
func (q Quirks) Rewrite(query string) string {
	if q.Has(OperatorsJoined) {
		query = joinOperators.Replace(query)
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

// verbatim is a string, quoted name or comment, closed or not. One in brackets is a
// name too.
var verbatim = regexp.MustCompile(`(?s)'[^']*'?|"[^"]*"?|` + "`[^`]*`?" + `|\[[^\]]*\]?|--[^\n]*|/\*.*?(?:\*/|$)`)

func stripDistinct(query string) string {
	var out strings.Builder
	at := 0
	for _, span := range verbatim.FindAllStringIndex(query, -1) {
		out.WriteString(distinct.ReplaceAllString(query[at:span[0]], ""))
		out.WriteString(query[span[0]:span[1]])
		at = span[1]
	}
	out.WriteString(distinct.ReplaceAllString(query[at:], ""))
	return out.String()
}

// firstStatement cuts behind the first semicolon outside quotes and brackets.
func firstStatement(query string) string {
	quoted := verbatim.FindAllStringIndex(query, -1)
	depth := 0
	for i := 0; i < len(query); i++ {
		if len(quoted) > 0 && i == quoted[0][0] {
			i = quoted[0][1] - 1
			quoted = quoted[1:]
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
