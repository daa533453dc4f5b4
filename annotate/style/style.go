// Package style writes new SQL into a query so that it cannot be told from the rest by
// its looks: in the query's own case, quotes, aliases and white space (style.go), and
// byte for byte as it was where a clause does not change (patch.go).
package style

import (
	"strings"

	"caper/sql"

	"github.com/sqlc-dev/meyer/token"
)

// Style is how a query is written. New tokens take it over, so that a changed
// clause cannot be told from an unchanged one by its looks: a reward model would
// learn the looks.
type Style struct {
	lowerKeywords, lowerNames bool
	upperFunctions            bool
	stringQuote, nameQuote    byte
	notEqual                  string // "!=" or "<>"
	as                        bool   // aliases are written with AS
	inner                     bool   // every inner join is written with INNER
	quoteNames                bool   // every name stands in quotes
	operator, comma           gaps
}

// gaps is the white space on both sides of a sign.
type gaps struct{ before, behind string }

// Write prints a tree in the style.
func (s Style) Write(tree *sql.Node) string { return join(s.dress(lexemes(sql.Render(tree)))) }

// Literal is a text as the query quotes it: in double quotes it reads as a column.
func (s Style) Literal(text string) *sql.Node {
	if s.stringQuote == '"' && !strings.Contains(text, `"`) {
		return &sql.Node{Kind: sql.Column, Value: text, DoubleQuoted: true}
	}
	return &sql.Node{Kind: sql.String, Value: text}
}

// Of reads the style off a query.
func Of(text string) Style {
	s := Style{lowerNames: true, stringQuote: '\'', nameQuote: '"', notEqual: "!=", as: true}
	list := lexemes(text)
	var lower, upper, mixedNames, names, quoted, aliases, withAs, inner, bare int
	for i, l := range list {
		content, quote := l.content()
		if l.Kind == token.JOIN && i > 0 {
			switch before := list[i-1]; {
			case strings.EqualFold(before.text, "INNER"):
				inner++
			case before.Kind != token.JOIN_KW:
				bare++
			}
		}
		switch {
		case l.Kind == token.NE:
			s.notEqual = l.text
		case quote == '\'':
			s.stringQuote = quote
		case quote == '"' && i > 0 && isComparison(list[i-1].Kind):
			s.stringQuote = quote
		case quote != 0:
			s.nameQuote = quote
			quoted++
		case l.Kind == token.ID && i+1 < len(list) && list[i+1].Kind == token.LP:
			s.upperFunctions = strings.ToUpper(content) == content
		case l.Kind == token.ID:
			if names++; strings.ToLower(content) != content {
				mixedNames++
			}
			if i > 0 && list[i-1].Kind == token.ID {
				aliases++
			}
			if i > 0 && list[i-1].Kind == token.AS {
				withAs++
			}
		case l.isWord() && l.Kind > token.PTR && content == strings.ToLower(content):
			lower++
		case l.isWord() && l.Kind > token.PTR:
			upper++
		}
	}
	s.quoteNames = names == 0 && quoted > 0
	s.lowerKeywords = lower > upper
	s.lowerNames = mixedNames == 0 && names > 0
	s.as = aliases == 0 || withAs > 0
	s.inner = inner > 0 && bare == 0
	s.operator = gapsOf(list, isSign, gaps{" ", " "})
	s.comma = gapsOf(list, isComma, gaps{"", " "})
	if !hasCall(list) {
		s.upperFunctions = !s.lowerKeywords
	}
	return s
}

// isComparison reports that a literal is what mostly follows the token.
func isComparison(k token.Kind) bool {
	switch k {
	case token.EQ, token.NE, token.LT, token.LE, token.GT, token.GE, token.LIKE_KW:
		return true
	}
	return false
}

// isSign reports that the token is a comparison that is no word.
func isSign(k token.Kind) bool { return isComparison(k) && k != token.LIKE_KW }

func isComma(k token.Kind) bool { return k == token.COMMA }

// gapsOf is the white space that stands most often on both sides of a kind of
// sign, without line ends and comments, which belong to what they set off; usual
// where no such sign stands.
func gapsOf(list []lexeme, is func(token.Kind) bool, usual gaps) gaps {
	counts := make(map[gaps]int)
	most := usual
	for i, l := range list {
		if !is(l.Kind) || i+1 == len(list) || strings.Trim(l.gap+list[i+1].gap, " ") != "" {
			continue
		}
		g := gaps{l.gap, list[i+1].gap}
		if counts[g]++; counts[g] > counts[most] {
			most = g
		}
	}
	return most
}

func hasCall(list []lexeme) bool {
	for i := 1; i < len(list); i++ {
		if list[i].Kind == token.LP && list[i-1].Kind == token.ID && list[i-1].text[0] != '"' {
			return true
		}
	}
	return false
}

// castTypes are the words that Render prints as the type of a CAST and that
// operators put there; they are written like keywords.
var castTypes = map[string]bool{"REAL": true, "INTEGER": true, "TEXT": true}

// worded leaves AS out and puts INNER in, where the query does, of tokens that
// Render printed.
func (s Style) worded(list []lexeme) []lexeme {
	words := make([]lexeme, 0, len(list))
	for i, l := range list {
		switch {
		case l.Kind == token.AS && !s.as && isAliasAs(list, i):
			continue
		case l.Kind == token.JOIN && s.inner && i > 0 && list[i-1].Kind != token.JOIN_KW:
			words = append(words, lexeme{token.JOIN_KW, "INNER", l.gap})
			l.gap = " "
		}
		words = append(words, l)
	}
	return words
}

// dress writes tokens that Render printed in the style.
func (s Style) dress(list []lexeme) []lexeme { return s.dressWords(s.worded(list)) }

// dressWords is dress of tokens that are worded already.
func (s Style) dressWords(list []lexeme) []lexeme {
	dressed := make([]lexeme, 0, len(list))
	for i, l := range list {
		content, quote := l.content()
		switch {
		case l.Kind == token.NE:
			l.text = s.notEqual
		case quote == '\'' && s.stringQuote == '"' && !strings.ContainsRune(content, '"'):
			l.text = `"` + content + `"`
		case quote == '"':
			l.text = s.quotedName(content)
		case quote != 0:
		case l.Kind == token.ID && i+1 < len(list) && list[i+1].Kind == token.LP:
			l.text = caseOf(content, !s.upperFunctions)
		case l.Kind == token.ID && i > 0 && list[i-1].Kind == token.AS && castTypes[content]:
			l.text = caseOf(content, s.lowerKeywords)
		case l.Kind == token.ID:
			if s.lowerNames {
				l.text = strings.ToLower(content)
			}
			if s.quoteNames {
				l.text = s.quotedName(content)
			}
		case l.isWord() && l.Kind > token.PTR:
			l.text = caseOf(content, s.lowerKeywords)
		}
		switch {
		case isSign(l.Kind):
			l.gap = s.operator.before
		case i > 0 && isSign(list[i-1].Kind):
			l.gap = s.operator.behind
		case isComma(l.Kind):
			l.gap = s.comma.before
		case i > 0 && isComma(list[i-1].Kind):
			l.gap = s.comma.behind
		}
		dressed = append(dressed, l)
	}
	return dressed
}

// quotedName writes a name in the query's kind of quotes, where it fits in.
func (s Style) quotedName(name string) string {
	switch {
	case s.nameQuote == '`' && !strings.ContainsRune(name, '`'):
		return "`" + name + "`"
	case s.nameQuote == '[' && !strings.ContainsAny(name, "[]"):
		return "[" + name + "]"
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// isAliasAs tells the AS of an alias from the AS of CAST and of a CTE.
func isAliasAs(list []lexeme, i int) bool {
	if i == 0 || i+2 < len(list) && list[i+1].Kind == token.LP {
		return false
	}
	return i+2 >= len(list) || list[i+2].Kind != token.RP
}

func caseOf(word string, lower bool) string {
	if lower {
		return strings.ToLower(word)
	}
	return strings.ToUpper(word)
}
