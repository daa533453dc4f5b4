package annotate

import (
	"strings"

	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/token"
)

// lexeme is one token of a query and the white space or comment ahead of it.
type lexeme struct {
	token.Kind
	text, gap string
}

// lexemes cuts text into tokens, without the end marker.
func lexemes(text string) []lexeme {
	tokens := lexer.Lex(text)
	list := make([]lexeme, 0, len(tokens))
	last := 0
	for _, t := range tokens {
		if t.Kind == token.EOF {
			break
		}
		list = append(list, lexeme{t.Kind, text[t.Pos:t.End], text[last:t.Pos]})
		last = t.End
	}
	return list
}

// content is the token's text without quotes, quote the quote it stands in, 0
// for none.
func (l lexeme) content() (text string, quote byte) {
	if n := len(l.text); n >= 2 {
		switch q := l.text[0]; q {
		case '\'', '"', '`':
			inner := l.text[1 : n-1]
			return strings.ReplaceAll(inner, string([]byte{q, q}), string(q)), q
		case '[':
			return l.text[1 : n-1], q
		}
	}
	return l.text, 0
}

// same reports that two tokens say the same thing in whatever case, quotes or
// spelling.
func (l lexeme) same(m lexeme) bool {
	a, quoteA := l.content()
	b, quoteB := m.content()
	switch {
	case quoteA == '\'' || quoteB == '\'':
		return quoteA != 0 && quoteB != 0 && a == b
	case quoteA == 0 && quoteB == 0 && l.Kind != m.Kind:
		return false
	case l.Kind == m.Kind && (l.Kind == token.NE || l.Kind == token.EQ):
		return true
	}
	return strings.EqualFold(a, b)
}

// isWord reports that the token would run into a neighbouring word.
func (l lexeme) isWord() bool {
	c := l.text[0] | 0x20
	return c >= 'a' && c <= 'z' || c == '_' || c >= 0x80 || c >= '0' && c <= '9'
}

// closes reports that the token ends in a quote or parenthesis, which a word
// behind it need not but should be set off from.
func (l lexeme) closes() bool {
	_, quote := l.content()
	return quote != 0 || l.Kind == token.RP
}

// style is how a query is written. New tokens take it over, so that a changed
// clause cannot be told from an unchanged one by its looks: a reward model would
// learn the looks.
type style struct {
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

// styleOf reads the style off a query.
func styleOf(text string) style {
	s := style{lowerNames: true, stringQuote: '\'', nameQuote: '"', notEqual: "!=", as: true}
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
func (s style) worded(list []lexeme) []lexeme {
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
func (s style) dress(list []lexeme) []lexeme { return s.dressWords(s.worded(list)) }

// dressWords is dress of tokens that are worded already.
func (s style) dressWords(list []lexeme) []lexeme {
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
func (s style) quotedName(name string) string {
	switch {
	case s.nameQuote == '`' && !strings.ContainsRune(name, '`'):
		return "`" + name + "`"
	case s.nameQuote == '[' && !strings.ContainsAny(name, "[]"):
		return "[" + name + "]"
	}
	return quoteName(name)
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
