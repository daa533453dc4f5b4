package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is what the patterns ask of a character. Every character has one.
type class uint8

const (
	other class = iota
	letter
	mark // other for qwen2Pattern, letter for qwen35Pattern
	number
	space
	newline // \r and \n, which are white space too
	wide    // of a byte that is not ASCII: the bytes after it decide
	end     // the end of the text
)

// byteClasses holds the classes of ASCII.
var byteClasses = func() (classes [256]class) {
	for b := range classes {
		classes[b] = wide
		if b < utf8.RuneSelf {
			classes[b] = classOf(rune(b))
		}
	}
	return classes
}()

// planeClasses holds the classes of the basic plane, where nearly all text lies. It
// is filled when the first text that is not ASCII comes.
var planeClasses = sync.OnceValue(func() *[1 << 16]class {
	var classes [1 << 16]class
	for r := range classes {
		classes[r] = classOf(rune(r))
	}
	return &classes
})

// classOfRune is classOf, by table where there is one.
func classOfRune(r rune) class {
	if r < 1<<16 {
		return planeClasses()[r]
	}
	return classOf(r)
}

func classOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.In(r, unicode.L, newerLetters):
		return letter
	case unicode.In(r, unicode.N, newerNumbers):
		return number
	case unicode.IsSpace(r):
		return space
	case unicode.In(r, unicode.M, newerMarks):
		return mark
	}
	return other
}

// The characters that Unicode 15.1 and 16 brought: the tokenizers library knows
// them, the unicode package not yet.
var (
	newerLetters = &unicode.RangeTable{
		R16: []unicode.Range16{{0x1C89, 0x1C8A, 1}, {0xA7CB, 0xA7CD, 1}, {0xA7DA, 0xA7DC, 1}},
		R32: []unicode.Range32{
			{0x105C0, 0x105F3, 1}, {0x10D4A, 0x10D65, 1}, {0x10D6F, 0x10D85, 1}, {0x10EC2, 0x10EC4, 1},
			{0x11380, 0x11389, 1}, {0x1138B, 0x1138B, 1}, {0x1138E, 0x1138E, 1}, {0x11390, 0x113B5, 1},
			{0x113B7, 0x113B7, 1}, {0x113D1, 0x113D1, 1}, {0x113D3, 0x113D3, 1}, {0x11BC0, 0x11BE0, 1},
			{0x13460, 0x143FA, 1}, {0x16100, 0x1611D, 1}, {0x16D40, 0x16D6C, 1}, {0x18CFF, 0x18CFF, 1},
			{0x1E5D0, 0x1E5ED, 1}, {0x1E5F0, 0x1E5F0, 1}, {0x2EBF0, 0x2EE5D, 1},
		},
	}
	newerNumbers = &unicode.RangeTable{
		R32: []unicode.Range32{
			{0x10D40, 0x10D49, 1}, {0x116D0, 0x116E3, 1}, {0x11BF0, 0x11BF9, 1}, {0x16130, 0x16139, 1},
			{0x16D70, 0x16D79, 1}, {0x1CCF0, 0x1CCF9, 1}, {0x1E5F1, 0x1E5FA, 1},
		},
	}
	newerMarks = &unicode.RangeTable{
		R16: []unicode.Range16{{0x0897, 0x0897, 1}},
		R32: []unicode.Range32{
			{0x10D69, 0x10D6D, 1}, {0x10EFC, 0x10EFC, 1}, {0x113B8, 0x113C0, 1}, {0x113C2, 0x113C2, 1},
			{0x113C5, 0x113C5, 1}, {0x113C7, 0x113CA, 1}, {0x113CC, 0x113D0, 1}, {0x113D2, 0x113D2, 1},
			{0x113E1, 0x113E2, 1}, {0x11F5A, 0x11F5A, 1}, {0x1611E, 0x1612F, 1}, {0x1E5EE, 0x1E5EF, 1},
		},
	}
)
