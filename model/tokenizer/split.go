package tokenizer

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// pattern is one of the two expressions that Qwen's tokenizers split text by.
// They need look-ahead, which Go's regexp lacks, so the splitter is written by
// hand; it is also some twenty times faster.
type pattern int

const (
	// qwen2Pattern serves Qwen2, Qwen2.5 and Qwen3.
	qwen2Pattern pattern = iota
	// qwen35Pattern differs in that combining marks count as letters.
	qwen35Pattern
)

// expressions holds the patterns as tokenizer.json spells them, alternatives in
// the order in which next tries them.
var expressions = [...]string{
	qwen2Pattern: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` +
		`|\s*[\r\n]+|\s+(?!\S)|\s+`,
	qwen35Pattern: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` +
		`|\s*[\r\n]+|\s+(?!\S)|\s+`,
}

// patternOf recognises an expression by its text.
func patternOf(expression string) (pattern, error) {
	for p, e := range expressions {
		if e == expression {
			return pattern(p), nil
		}
	}
	return 0, fmt.Errorf("split pattern %q is not supported: use the tokenizer of a Qwen2, Qwen3 or Qwen3.5 model", expression)
}

// at returns the class and the length in bytes of the character at text[i:]. A
// byte that is not UTF-8 is a character of class other.
func (p pattern) at(text string, i int) (class, int) {
	if i >= len(text) {
		return end, 0
	}
	if c := byteClasses[text[i]]; c != wide {
		return c, 1
	}
	return p.decode(text[i:])
}

// decode is at for text that does not start with ASCII.
func (p pattern) decode(text string) (class, int) {
	r, n := utf8.DecodeRuneInString(text)
	c := classOfRune(r)
	if c == mark {
		c = other
		if p == qwen35Pattern {
			c = letter
		}
	}
	return c, n
}

// next returns the length of the piece that text, which is not empty, starts
// with.
func (p pattern) next(text string) int {
	first, n := p.at(text, 0)
	if first == letter {
		return p.letters(text, n)
	}
	if first == number {
		return n
	}
	if text[0] == '\'' {
		if n := contraction(text); n > 0 {
			return n
		}
	}
	second, _ := p.at(text, n)
	switch {
	case second == letter && first != newline:
		return p.letters(text, n)
	case first == other:
		return p.punctuation(text, n)
	case second == other && text[0] == ' ':
		return p.punctuation(text, n)
	}
	return p.whiteSpace(text)
}

// letters returns the end of the run of letters that goes on at text[i:]. Most
// are ASCII; these are counted eight at a time, because guessing the end of a
// word letter by letter costs a processor more than the rest of the work.
func (p pattern) letters(text string, i int) int {
	for i+8 <= len(text) {
		n := asciiLetters(load(text[i:]))
		i += n
		if n < 8 {
			break
		}
	}
	return p.run(text, i, letter)
}

// asciiLetters returns how many of the eight bytes of w, lowest first, are ASCII
// letters before one that is not.
func asciiLetters(w uint64) int {
	const each = 0x0101010101010101 // times a byte: that byte eight times
	const high = 0x80 * each
	folded := (w | 0x20*each) &^ high
	fromA := folded + (0x80-'a')*each     // sets the high bit of bytes from 'a' on
	pastZ := folded + (0x80-('z'+1))*each // and of those after 'z'
	return bits.TrailingZeros64((fromA&^pastZ&^w)&high^high) / 8
}

// run returns the end of the run of class c that goes on at text[i:].
func (p pattern) run(text string, i int, c class) int {
	for {
		got, n := p.at(text, i)
		if got != c {
			return i
		}
		i += n
	}
}

// punctuation ends a piece of class other: the run, then its line ends.
func (p pattern) punctuation(text string, i int) int {
	return p.run(text, p.run(text, i, other), newline)
}

// whiteSpace measures a piece of white space: up to the last line end of the
// run; without one, up to the last character, which goes with the word that
// follows; at the end of the text, or when there is but one, all of it.
func (p pattern) whiteSpace(text string) int {
	length, last, afterNewline := 0, 0, 0
	for {
		c, n := p.at(text, length)
		if c != space && c != newline {
			break
		}
		last = length
		length += n
		if c == newline {
			afterNewline = length
		}
	}
	switch {
	case afterNewline > 0:
		return afterNewline
	case length < len(text) && last > 0:
		return last
	}
	return length
}

// contraction returns the length of the English contraction that text, which
// starts with an apostrophe, starts with, in either case, or 0. Case folding makes the long s an s.
func contraction(text string) int {
	if len(text) < 2 {
		return 0
	}
	const lower = 0x20 // a letter with this bit is lower case
	switch text[1] | lower {
	case 's', 't', 'm', 'd':
		return 2
	}
	if strings.HasPrefix(text[1:], "ſ") {
		return 1 + len("ſ")
	}
	if len(text) >= 3 {
		switch [2]byte{text[1] | lower, text[2] | lower} {
		case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
			return 3
		}
	}
	return 0
}
