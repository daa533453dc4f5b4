package solve

import (
	"regexp"
	"strings"

	"caper/sql"
)

var (
	thoughts  = regexp.MustCompile(`(?s)^.*</think>`)
	fenced    = regexp.MustCompile("(?s)```[a-zA-Z0-9]*[ \t]*\r?\n(.*?)(?:```|$)")
	statement = regexp.MustCompile(`(?i)\b(SELECT|WITH|VALUES)\b`)
)

// ExtractSQL finds the query in what a model said: the last fenced block that parses,
// else the first statement that stands in the text, however it goes on. It is "" where
// nothing in the text parses; what a model thinks before it answers does not count.
func ExtractSQL(text string) string {
	text = thoughts.ReplaceAllString(text, "")
	blocks := fenced.FindAllStringSubmatch(text, -1)
	for i := len(blocks) - 1; i >= 0; i-- {
		if query := firstStatement(blocks[i][1]); query != "" {
			return query
		}
	}
	const tries = 20 // "select" is a word of English too
	for _, at := range statement.FindAllStringIndex(text, tries) {
		if query := firstStatement(text[at[0]:]); query != "" && !isProse(query) {
			return query
		}
	}
	return ""
}

// firstStatement is the longest part from the text's start on that is one statement.
func firstStatement(text string) string {
	text = strings.TrimSpace(text)
	if _, err := sql.Parse(text); err == nil {
		return strings.TrimRight(text, " \t\r\n;")
	}
	if mends := cutTail(&Examined{Candidate: candidateOf(text)}); len(mends) > 0 {
		return mends[0].sql
	}
	return ""
}

// isProse reports that words were taken for a query: "select the" is one, of a column.
func isProse(query string) bool {
	tree, err := sql.Parse(query)
	return err != nil || tree.Kind == sql.Select && tree.Child(sql.From) == nil && len(strings.Fields(query)) <= 4 &&
		tree.Child(sql.Projection).Children[0].Children[0].Kind == sql.Column
}
