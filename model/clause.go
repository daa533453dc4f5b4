package model

import (
	"errors"
	"fmt"
	"strings"

	"caper/model/tokenizer"
)

// Layout is the input of a clause reward model:
//
//	prompt unit marker unit marker ... unit marker end
//
// Each clause's text (unit) is encoded alone and followed by the clause token; the
// clause's score is read at that token, and the causal model has then seen the prompt
// and the query up to there. The end token says "the query ends here" and is scored
// like a clause, so that omissions can be found. Texts are encoded as plain text:
// a marker spelt out in a query is no marker.
type Layout struct {
	tokenizer   *tokenizer.Tokenizer
	clause, end int32
}

// Layout returns the layout of a model whose config.json names the two tokens.
func (m *Model) Layout() (*Layout, error) {
	if m.Tokenizer == nil {
		return nil, errors.New("the model has no tokenizer.json: copy it from where the weights come from")
	}
	l := &Layout{tokenizer: m.Tokenizer}
	for _, token := range []struct {
		key, text string
		id        *int32
	}{{"caper_clause_token", m.Config.ClauseToken, &l.clause}, {"caper_end_token", m.Config.EndToken, &l.end}} {
		if token.text == "" {
			return nil, fmt.Errorf("config.json names no %s: not a clause reward model; caper train prm makes one", token.key)
		}
		id, ok := m.Tokenizer.ID(token.text)
		if !ok {
			return nil, fmt.Errorf("%s: the tokenizer has no token %q", token.key, token.text)
		}
		*token.id = id
	}
	return l, nil
}

// Sequence is a prompt and clauses as tokens.
type Sequence struct {
	Tokens []int32
	// Marks are the indices in Tokens where scores are read: one per clause, and one
	// for the end where there is one.
	Marks []int32
}

// Prompt appends the tokens of the prompt to dst.
func (l *Layout) Prompt(dst []int32, prompt string) []int32 {
	return l.tokenizer.EncodeText(prompt, dst)
}

// Clause appends one clause with its marker to s. White space around the clause is
// left out: to which of two clauses the space between them belongs says nothing.
func (l *Layout) Clause(s *Sequence, unit string) {
	s.Tokens = append(l.tokenizer.EncodeText(strings.TrimSpace(unit), s.Tokens), l.clause)
	s.Marks = append(s.Marks, int32(len(s.Tokens)-1))
}

// Opened appends the beginning of a clause that goes on, without a marker.
func (l *Layout) Opened(s *Sequence, text string) {
	s.Tokens = l.tokenizer.EncodeText(strings.TrimSpace(text), s.Tokens)
}

// End appends the end of the query to s.
func (l *Layout) End(s *Sequence) {
	s.Tokens = append(s.Tokens, l.end)
	s.Marks = append(s.Marks, int32(len(s.Tokens)-1))
}

// Query returns a prompt, given as tokens, with all clauses of a query and its end.
func (l *Layout) Query(prompt []int32, units []string) Sequence {
	s := Sequence{Tokens: append([]int32(nil), prompt...)}
	for _, unit := range units {
		l.Clause(&s, unit)
	}
	l.End(&s)
	return s
}
