package sql

import (
	"strings"

	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/token"
)

// MaxTextBytes bounds the text that is scanned or parsed. It is far above any
// query that a person or a model writes, and keeps hostile input cheap.
const MaxTextBytes = 1 << 17

// Clauses cuts the first statement of text into its top-level clause units
// (caper.md 1.4.1). It reads tokens, not grammar, so it works on truncated and
// unparsable text alike.
//
// The units partition text[:n], where n ends the first statement: each unit
// starts at its keyword and ends where the next one starts, so white space,
// comments and the closing semicolon belong to the unit before them. Only the
// first 128 KiB are read; what follows counts as text after the statement. Text ahead
// of the first SELECT, WITH or VALUES (reasoning, a code fence) belongs to the
// first unit; text after the first statement belongs to none. Text without any
// clause keyword is one SELECT unit; blank text has no units.
//
// WITH and all its tables are one unit, FROM and all its joins are one unit,
// and a set operator and its right operand are one unit (SETOP). ORDER BY and
// LIMIT after a set operation are units of their own. VALUES counts as SELECT.
func Clauses(text string) []Clause {
	offset, scanned := fenced(text)
	units := clauses(scanned, lexer.Lex(scanned))
	for i := range units {
		units[i].Start += offset
		units[i].End += offset
	}
	if len(units) > 0 {
		units[0].Start = 0
	}
	return units
}

// clauses cuts the tokens of a text.
func clauses(text string, tokens []token.Token) []Clause {
	s := scanner{src: text, tokens: tokens}
	s.cutFirstStatement()
	s.scan()
	if len(s.units) == 0 {
		return nil
	}
	for i := range s.units[1:] {
		s.units[i].End = s.units[i+1].Start
	}
	s.units[0].Start = 0
	s.units[len(s.units)-1].End = s.end
	return s.units
}

// fence opens and closes a Markdown block.
const fence = "```"

// fenced returns the part of text to scan and its offset: the inside of the
// first Markdown code fence where there is one. SQLite would read the fence's
// back quotes as an identifier and swallow the query.
func fenced(text string) (offset int, inside string) {
	if len(text) > MaxTextBytes {
		text = text[:MaxTextBytes]
	}
	open := strings.Index(text, fence)
	if open < 0 {
		return 0, text
	}
	offset = open + len(fence)
	for offset < len(text) && (text[offset]|0x20) >= 'a' && (text[offset]|0x20) <= 'z' {
		offset++ // the language name
	}
	inside = text[offset:]
	if end := strings.Index(inside, fence); end >= 0 {
		inside = inside[:end]
	}
	return offset, inside
}

// scanner finds the starts of clause units in one statement's tokens.
type scanner struct {
	src    string
	tokens []token.Token // of the first statement, without its semicolon
	end    int           // end of the first statement, trailing space included
	units  []Clause
}

// cutFirstStatement drops leading semicolons and everything after the first
// statement.
func (s *scanner) cutFirstStatement() {
	for len(s.tokens) > 1 && s.tokens[0].Kind == token.SEMI {
		s.tokens = s.tokens[1:]
	}
	for i, t := range s.tokens {
		switch t.Kind {
		case token.SEMI:
			s.tokens, s.end = s.tokens[:i], s.tokens[i+1].Pos
			return
		case token.EOF:
			s.tokens, s.end = s.tokens[:i], t.Pos
			return
		}
	}
}

// scan walks the depth-0 tokens from the statement's head and opens a unit at
// each clause keyword.
func (s *scanner) scan() {
	if len(s.tokens) == 0 {
		return
	}
	head := s.head()
	if head < 0 { // the policy left SELECT out, or there is no SQL at all
		s.open(ClauseSelect, 0)
		head = 0
	}
	depth, operand := 0, false // operand: inside the right side of a set operator
	for i := head; i < len(s.tokens); i++ {
		switch s.tokens[i].Kind {
		case token.LP:
			depth++
		case token.RP:
			depth = max(depth-1, 0)
		}
		if depth > 0 {
			continue
		}
		kind := s.boundary(i)
		switch kind {
		case "":
			continue
		case ClauseSetOp:
			operand = true
		case ClauseOrderBy, ClauseLimit:
			operand = false
		default:
			if operand {
				continue
			}
		}
		s.open(kind, i)
	}
}

// open starts a unit at token i. A SELECT unit that was opened for want of a
// keyword gives way when the text does begin with one.
func (s *scanner) open(kind ClauseKind, i int) {
	if i == 0 {
		s.units = s.units[:0]
	}
	s.units = append(s.units, Clause{Kind: kind, Start: s.tokens[i].Pos})
}

// head is the index of the first token of the statement proper: the first
// depth-0 SELECT, VALUES or WITH that no set operator precedes, or -1.
func (s *scanner) head() int {
	depth := 0
	for i, t := range s.tokens {
		switch t.Kind {
		case token.LP:
			depth++
		case token.RP:
			depth = max(depth-1, 0)
		case token.UNION, token.INTERSECT, token.EXCEPT:
			if depth == 0 && i > 0 {
				return -1
			}
		case token.SELECT, token.VALUES:
			if depth == 0 && !s.named(i) {
				return i
			}
		case token.WITH:
			if depth == 0 && s.opensWith(i) {
				return i
			}
		}
	}
	return -1
}

// boundary returns the kind of the unit that starts at depth-0 token i, or "".
func (s *scanner) boundary(i int) ClauseKind {
	if s.named(i) {
		return ""
	}
	switch s.tokens[i].Kind {
	case token.WITH:
		if len(s.units) == 0 && s.opensWith(i) {
			return ClauseWith
		}
	case token.SELECT:
		return ClauseSelect
	case token.VALUES:
		if len(s.units) == 0 || s.units[len(s.units)-1].Kind == ClauseWith {
			return ClauseSelect
		}
	case token.FROM:
		if !s.distinctFrom(i) {
			return ClauseFrom
		}
	case token.WHERE:
		return ClauseWhere
	case token.GROUP:
		if s.followedBy(i, token.BY) {
			return ClauseGroupBy
		}
	case token.HAVING:
		return ClauseHaving
	case token.WINDOW:
		return ClauseWindow
	case token.ORDER:
		if s.followedBy(i, token.BY) {
			return ClauseOrderBy
		}
	case token.LIMIT:
		return ClauseLimit
	case token.UNION, token.INTERSECT, token.EXCEPT:
		return ClauseSetOp
	}
	return ""
}

// named reports that token i is the name after a dot (T1.group), whatever
// keyword it spells. A dot and a space end a sentence instead.
func (s *scanner) named(i int) bool {
	return i > 0 && s.tokens[i-1].Kind == token.DOT && s.tokens[i-1].End == s.tokens[i].Pos
}

// followedBy reports that the token after i has kind k, or that the text was
// cut off right after i.
func (s *scanner) followedBy(i int, k token.Kind) bool {
	return i+1 == len(s.tokens) || s.tokens[i+1].Kind == k
}

// distinctFrom reports that FROM at i belongs to the operator IS [NOT] DISTINCT
// FROM.
func (s *scanner) distinctFrom(i int) bool {
	if i < 2 || s.tokens[i-1].Kind != token.DISTINCT {
		return false
	}
	before := s.tokens[i-2].Kind
	return before == token.IS || before == token.NOT
}

// opensWith tells the keyword WITH from the English word ahead of a query: a
// table name and AS or a column list follow, as far as the text goes.
func (s *scanner) opensWith(i int) bool {
	rest := s.tokens[i+1:]
	if len(rest) > 0 && rest[0].Kind == token.RECURSIVE {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return true
	}
	if !token.IsName(rest[0].Kind) {
		return false
	}
	return len(rest) == 1 || rest[1].Kind == token.AS || rest[1].Kind == token.LP
}
