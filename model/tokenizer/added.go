package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// addedTokens finds the tokens that are matched in raw text, before anything
// else is done with it.
type addedTokens struct {
	list    []addedToken      // in order of ids
	byFirst [256][]addedToken // by first byte, longest first
	// firsts holds the distinct first bytes. It is "<" in every Qwen model, and
	// text is then skipped at the speed of memory.
	firsts []byte
}

// addedToken is an entry of added_tokens.
type addedToken struct {
	id      int32
	text    string
	special bool
	inVocab bool // listed in the model's vocabulary as well
}

// newAddedTokens prepares a list of added tokens for searching.
func newAddedTokens(list []addedToken) addedTokens {
	a := addedTokens{list: slices.Clone(list)}
	slices.SortFunc(a.list, func(x, y addedToken) int { return cmp.Compare(x.id, y.id) })
	for _, t := range a.list {
		first := t.text[0]
		if a.byFirst[first] == nil {
			a.firsts = append(a.firsts, first)
		}
		a.byFirst[first] = append(a.byFirst[first], t)
	}
	for _, tokens := range a.byFirst {
		slices.SortFunc(tokens, func(x, y addedToken) int { return cmp.Compare(len(y.text), len(x.text)) })
	}
	return a
}

// find returns the leftmost added token in text, the longest of those that start
// there, as text[start:end]; start is -1 when there is none.
func (a *addedTokens) find(text string) (start, end int, id int32) {
	for at := 0; at < len(text) && len(a.firsts) > 0; at++ {
		if len(a.firsts) == 1 {
			skip := strings.IndexByte(text[at:], a.firsts[0])
			if skip < 0 {
				break
			}
			at += skip
		}
		for _, t := range a.byFirst[text[at]] {
			if strings.HasPrefix(text[at:], t.text) {
				return at, at + len(t.text), t.id
			}
		}
	}
	return -1, -1, 0
}
