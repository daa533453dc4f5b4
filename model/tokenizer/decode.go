package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decode returns the text of ids: their bytes, joined, with U+FFFD for each
// ill-formed part of UTF-8. Ids without a token are passed over. skipSpecial
// leaves out the added tokens that are marked special.
func (k *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	length := 0
	for _, id := range ids {
		length += len(k.shown(id, skipSpecial))
	}
	var joined strings.Builder
	joined.Grow(length)
	for _, id := range ids {
		joined.WriteString(k.shown(id, skipSpecial))
	}
	return validUTF8(joined.String())
}

// shown returns the bytes that Decode shows for id.
func (k *Tokenizer) shown(id int32, skipSpecial bool) string {
	if id < 0 || int(id) >= len(k.bytes) || skipSpecial && k.special[id] {
		return ""
	}
	return k.bytes[id]
}

// Decoder decodes ids as they come. A token may end within a character; the
// decoder holds such bytes back until the character is whole, so everything that
// it returns can be shown at once, and all of it together is what Decode returns
// for all ids.
type Decoder struct {
	tokenizer   *Tokenizer
	skipSpecial bool
	held        string // the beginning of a character
}

// Decoder returns a decoder for one stream of ids. skipSpecial is that of Decode.
func (k *Tokenizer) Decoder(skipSpecial bool) *Decoder {
	return &Decoder{tokenizer: k, skipSpecial: skipSpecial}
}

// Next takes the next id and returns the text that is complete with it.
func (d *Decoder) Next(id int32) string {
	text := d.held + d.tokenizer.shown(id, d.skipSpecial)
	whole := len(text) - unfinished(text)
	d.held = text[whole:]
	return validUTF8(text[:whole])
}

// Rest ends the stream and returns what is still held back: U+FFFD if the last
// character is not whole, else nothing.
func (d *Decoder) Rest() string {
	held := d.held
	d.held = ""
	return validUTF8(held)
}

// unfinished returns how many bytes at the end of text begin a character that
// more bytes may complete.
func unfinished(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if !utf8.FullRuneInString(text[len(text)-n:]) {
			return n
		}
	}
	return 0
}

// validUTF8 returns text with U+FFFD for each maximal ill-formed part (Unicode
// 16, section 3.9, U+FFFD substitution of maximal subparts): a truncated
// character becomes one, not one for each of its bytes.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 {
			n = illFormed(text)
		}
		out.WriteRune(r)
		text = text[n:]
	}
	return out.String()
}

// illFormed returns the length of the maximal subpart that text, which does
// not start with a character, starts with.
func illFormed(text string) int {
	// The second byte's range depends on the first (Unicode 16, table 3-7);
	// the later ones' does not.
	low, high, length := byte(0x80), byte(0xBF), 1
	switch first := text[0]; {
	case first >= 0xC2 && first <= 0xDF:
		length = 2
	case first >= 0xE0 && first <= 0xEF:
		length = 3
		if first == 0xE0 {
			low = 0xA0
		} else if first == 0xED {
			high = 0x9F
		}
	case first >= 0xF0 && first <= 0xF4:
		length = 4
		if first == 0xF0 {
			low = 0x90
		} else if first == 0xF4 {
			high = 0x8F
		}
	}
	n := 1
	for n < length && n < len(text) && text[n] >= low && text[n] <= high {
		low, high = 0x80, 0xBF
		n++
	}
	return n
}
