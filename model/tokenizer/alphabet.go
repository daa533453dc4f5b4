package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// GPT-2's byte alphabet writes every byte as one printable character: the
// printable Latin-1 bytes as themselves, the other 68 in byte order as U+0100,
// U+0101, ... A space is U+0120, written "Ġ".
var (
	byteRunes [256]rune
	runeBytes = map[rune]byte{}
)

func init() {
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = next
			next++
		}
		byteRunes[b] = r
		runeBytes[r] = byte(b)
	}
}

// spell writes bytes in the byte alphabet.
func spell(bytes string) string {
	var b strings.Builder
	for i := range len(bytes) {
		b.WriteRune(byteRunes[bytes[i]])
	}
	return b.String()
}

// unspell returns the bytes that a token stands for. As in the tokenizers
// library, a token with any character outside the alphabet stands for its own
// UTF-8.
func unspell(token string) string {
	bytes := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := runeBytes[r]
		if !ok {
			return token
		}
		bytes = append(bytes, b)
	}
	return string(bytes)
}

// validUTF8 decodes bytes as UTF-8 with U+FFFD for each maximal ill-formed part
// (Unicode 16, section 3.9, U+FFFD substitution of maximal subparts): a
// truncated character becomes one, not one for each of its bytes.
func validUTF8(bytes []byte) string {
	if utf8.Valid(bytes) {
		return string(bytes)
	}
	var out strings.Builder
	for len(bytes) > 0 {
		r, n := utf8.DecodeRune(bytes)
		if r == utf8.RuneError && n == 1 {
			n = illFormed(bytes)
		}
		out.WriteRune(r)
		bytes = bytes[n:]
	}
	return out.String()
}

// illFormed returns the length of the maximal subpart that bytes, which do not
// start with a character, start with.
func illFormed(bytes []byte) int {
	// The second byte's range depends on the first (Unicode 16, table 3-7);
	// the later ones' does not.
	low, high, length := byte(0x80), byte(0xBF), 1
	switch first := bytes[0]; {
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
	for n < length && n < len(bytes) && bytes[n] >= low && bytes[n] <= high {
		low, high = 0x80, 0xBF
		n++
	}
	return n
}
