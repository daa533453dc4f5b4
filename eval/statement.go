package eval

import (
	"strings"

	"caper/sqlexec"
)

// Python's sqlite3, which the official scripts run queries with, takes a text for one
// statement in its own way. Two of its habits are quirks of the rules.
const (
	// NoStatement: a prediction that holds no statement (it is empty, a comment, or no
	// text at all) runs, and gives an empty result.
	NoStatement sqlexec.Quirk = "no-statement"
	// SecondSemicolon: a second semicolon is a second statement, and so an error.
	SecondSemicolon sqlexec.Quirk = "second-semicolon"
)

// emptyResult is a query that gives what a text without a statement gives in Python.
const emptyResult = "SELECT NULL WHERE 0"

// hasNoStatement reports that a text is space, comments and semicolons.
func hasNoStatement(text string) bool {
	for text = afterBlanks(text); strings.HasPrefix(text, ";"); {
		text = afterBlanks(text[1:])
	}
	return text == ""
}

// hasSecondSemicolon reports that another semicolon follows the one that ends the first
// statement.
func hasSecondSemicolon(text string) bool {
	first := sqlexec.Quirks{sqlexec.FirstStatement}.Rewrite(text)
	return strings.HasPrefix(afterBlanks(text[len(first):]), ";")
}

// afterBlanks is a text from its first byte on that is neither space nor comment.
func afterBlanks(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\r\n\f\ufeff")
		switch {
		case strings.HasPrefix(text, "--"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text[2:], "*/")
		default:
			return text
		}
	}
}
