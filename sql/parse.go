package sql

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqlc-dev/meyer/ast"
	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/parser"
	"github.com/sqlc-dev/meyer/token"
)

// maxDepth bounds the nesting of a tree. It is SQLite's own limit on the depth
// of an expression, and keeps every recursive walk of a tree within the stack.
const maxDepth = 1000

// maxSources is SQLite's limit on the sources of one FROM clause.
const maxSources = 64

// maxOperands is SQLite's limit on the operands of one compound SELECT.
const maxOperands = 500

// maxParam is SQLite's limit on the number in ?7.
const maxParam = 32766

// ParseError says why a text is not one SELECT statement.
type ParseError struct {
	Offset    int // in bytes from the start of the text
	Line, Col int // from 1; Col counts bytes
	Message   string
}

// Error gives the message with its line and column.
func (e *ParseError) Error() string {
	return fmt.Sprintf("SQL line %d column %d: %s", e.Line, e.Col, e.Message)
}

// Parse reads text as one SELECT, VALUES or WITH ... SELECT statement in
// SQLite's grammar and returns its block: a Select, Compound or Values node. A
// closing semicolon is allowed. Every error is a *ParseError.
//
// The tree keeps what changes a result and drops what does not: redundant
// parentheses, chains of AND and OR (flattened), INDEXED BY and MATERIALIZED
// hints, the noise words INNER, OUTER and AS.
func Parse(text string) (*Node, error) {
	t, err := parse(text)
	if err != nil {
		return nil, err
	}
	return t.tree, nil
}

// ParseUnits is Parse and Clauses of one text, which costs less than both.
func ParseUnits(text string) (*Node, []Clause, error) {
	t, err := parse(text)
	if err != nil {
		return nil, nil, err
	}
	if strings.Contains(text, fence) { // in a string: Clauses takes it for a fence
		return t.tree, Clauses(text), nil
	}
	return t.tree, clauses(text, t.tokens), nil
}

func parse(text string) (*translator, error) {
	if len(text) > MaxTextBytes {
		return nil, parseError(text, MaxTextBytes, fmt.Sprintf("statement is longer than %d bytes", MaxTextBytes))
	}
	if nul := strings.IndexByte(text, 0); nul >= 0 {
		return nil, parseError(text, nul, "NUL byte in statement")
	}
	statements, err := parser.ParseString(text)
	if err != nil {
		var syntax *parser.Error
		if errors.As(err, &syntax) {
			return nil, parseError(text, max(syntax.Offset, 0), syntax.Message)
		}
		return nil, parseError(text, 0, err.Error())
	}
	switch {
	case len(statements) == 0:
		return nil, parseError(text, 0, "no statement")
	case len(statements) > 1:
		return nil, parseError(text, statements[1].Pos(), "more than one statement")
	}
	statement, ok := statements[0].(*ast.SelectStmt)
	if !ok {
		return nil, parseError(text, statements[0].Pos(), "not a SELECT, VALUES or WITH statement")
	}
	return translate(text, statement)
}

// parseError places message at a byte offset of text.
func parseError(text string, offset int, message string) *ParseError {
	line, col := parser.LineCol(text, min(offset, len(text)))
	return &ParseError{Offset: offset, Line: line, Col: col, Message: message}
}

// translator turns the grammar's tree into the neutral one. The grammar's tree
// does not record where keywords stand, so the spans of clauses are completed
// from the tokens.
type translator struct {
	src    string
	tokens []token.Token
	tree   *Node // once translated
	depth  int
	free   []Node // nodes not handed out yet, allocated in blocks
}

// translate runs the translator over one statement. Faults deep inside the
// recursion travel as a panic with a *ParseError and end here.
func translate(text string, statement *ast.SelectStmt) (t *translator, err error) {
	t = &translator{src: text, tokens: lexer.Lex(text)}
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(*ParseError)
			if !ok {
				panic(r)
			}
			t, err = nil, fault
		}
	}()
	t.tree = t.block(statement)
	return t, nil
}

// fail abandons the translation.
func (t *translator) fail(offset int, format string, args ...any) {
	panic(parseError(t.src, offset, fmt.Sprintf(format, args...)))
}

// enter and leave bracket the recursion.
func (t *translator) enter(offset int) {
	if t.depth++; t.depth > maxDepth {
		t.fail(offset, "statement is nested deeper than %d levels", maxDepth)
	}
}

func (t *translator) leave() { t.depth-- }

// node makes a node over [start, end) and adopts children, skipping nil ones.
func (t *translator) node(kind Kind, value string, start, end int, children ...*Node) *Node {
	if len(t.free) == 0 { // a statement has some more tokens than nodes
		t.free = make([]Node, min(max(3*len(t.tokens)/4, 8), 64))
	}
	n := &t.free[0]
	t.free = t.free[1:]
	n.Kind, n.Value, n.Start, n.End = kind, value, start, end
	for _, c := range children {
		n.add(c)
	}
	return n
}

// add appends child to n's children; a nil child is skipped.
func (n *Node) add(child *Node) {
	if child != nil {
		child.Parent = n
		n.Children = append(n.Children, child)
	}
}

// tokenAt is the index of the first token that starts at or after offset.
func tokenAt(tokens []token.Token, offset int) int {
	i, _ := slices.BinarySearchFunc(tokens, offset, func(tok token.Token, offset int) int {
		return cmp.Compare(tok.Pos, offset)
	})
	return i
}

func (t *translator) tokenAt(offset int) int { return tokenAt(t.tokens, offset) }

// before is the start of the token that stands count tokens before offset: the
// keyword in front of a clause's first part.
func (t *translator) before(offset, count int) int {
	return t.tokens[t.tokenAt(offset)-count].Pos
}

// after is the end of the first token at or after offset.
func (t *translator) after(offset int) int {
	return t.tokens[t.tokenAt(offset)].End
}
