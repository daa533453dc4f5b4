package tokenizer

import "strings"

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
