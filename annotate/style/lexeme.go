package style

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
