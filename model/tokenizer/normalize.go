package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalize returns text in normal form C as the tokenizers library computes it.
// That library's tables are those of Unicode 9: characters which came later
// neither move nor compose (see newer). Bytes that are not UTF-8 stay as they
// are.
//
// The norm package tells quickly what is normal, which text nearly always is, and
// knows every character's properties. It is not asked to do the rest because
// its tables are newer and because it breaks runs of more than 30 combining
// marks.
func normalize(text string) string {
	if norm.NFC.QuickSpanString(text) == len(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	for len(text) > 0 {
		n := norm.NFC.QuickSpanString(text)
		out.WriteString(text[:n])
		text = text[n:]
		n = segment(text)
		for _, p := range compose(reorder(decompose(text[:n]))) {
			out.WriteString(p.text)
		}
		text = text[n:]
	}
	return out.String()
}

// segment returns the length of the shortest prefix of text that nothing after
// it acts on: a character and all that may move or compose to its left.
func segment(text string) int {
	n := 0
	for n < len(text) {
		properties := norm.NFC.PropertiesString(text[n:])
		if n > 0 && properties.BoundaryBefore() {
			break
		}
		n += max(1, properties.Size())
	}
	return n
}

// point is one character on its way through normalisation.
type point struct {
	text  string
	class uint8 // canonical combining class
	// second says that the character may compose with one before it.
	second bool
}

// decompose cuts text into fully decomposed characters. Hangul syllables stay
// whole: composing would only put them together again.
func decompose(text string) []point {
	points := make([]point, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		char := text[:n]
		text = text[n:]
		if unicode.Is(newer, r) {
			points = append(points, point{text: char})
			continue
		}
		properties := norm.NFC.PropertiesString(char)
		parts := string(properties.Decomposition())
		if parts == "" {
			points = append(points, newPoint(char, properties))
			continue
		}
		for _, part := range parts {
			points = append(points, newPoint(string(part), norm.NFC.PropertiesString(string(part))))
		}
	}
	return points
}

func newPoint(char string, p norm.Properties) point {
	return point{text: char, class: p.CCC(), second: !p.BoundaryBefore()}
}

// reorder sorts every run of combining marks by class, stably, in place.
func reorder(points []point) []point {
	for start := 0; start < len(points); start++ {
		end := start
		for end < len(points) && points[end].class > 0 {
			end++
		}
		slices.SortStableFunc(points[start:end], func(a, b point) int { return int(a.class) - int(b.class) })
		start = end
	}
	return points
}

// compose joins each starter with the characters after it that are not blocked,
// in place (Unicode 16, section 3.11, D117).
func compose(points []point) []point {
	out := points[:0]
	starter := -1
	for _, p := range points {
		if starter >= 0 && p.second {
			adjacent := starter == len(out)-1
			if adjacent || out[len(out)-1].class < p.class {
				if joined, ok := join(out[starter].text, p.text); ok {
					out[starter].text = joined
					continue
				}
			}
		}
		if p.class == 0 {
			starter = len(out)
		}
		out = append(out, p)
	}
	return out
}

// join returns the single character that a and b compose to, if there is one.
func join(a, b string) (string, bool) {
	if r, _ := utf8.DecodeRuneInString(a); unicode.Is(newer, r) {
		return "", false
	}
	joined := norm.NFC.String(a + b)
	return joined, utf8.RuneCountInString(joined) == 1
}

// newer lists the combining marks that Unicode 10 to 15 brought, and U+11938
// with the second half of it, which is the one composition they brought.
var newer = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x07FD, 0x07FD, 1}, {0x0898, 0x089F, 1}, {0x08CA, 0x08D3, 1}, {0x09FE, 0x09FE, 1},
		{0x0C3C, 0x0C3C, 1}, {0x0D3B, 0x0D3C, 1}, {0x0EBA, 0x0EBA, 1}, {0x1715, 0x1715, 1},
		{0x1ABF, 0x1ACE, 1}, {0x1DF6, 0x1DFA, 1}, {0xA82C, 0xA82C, 1},
	},
	R32: []unicode.Range32{
		{0x10D24, 0x10D27, 1}, {0x10EAB, 0x10EAC, 1}, {0x10EFD, 0x10EFF, 1}, {0x10F46, 0x10F50, 1},
		{0x10F82, 0x10F85, 1}, {0x11070, 0x11070, 1}, {0x1133B, 0x1133B, 1}, {0x1145E, 0x1145E, 1},
		{0x11839, 0x1183A, 1}, {0x11930, 0x11930, 1}, {0x11938, 0x11938, 1}, {0x1193D, 0x1193E, 1},
		{0x11943, 0x11943, 1}, {0x119E0, 0x119E0, 1}, {0x11A34, 0x11A34, 1}, {0x11A47, 0x11A47, 1},
		{0x11A99, 0x11A99, 1}, {0x11D42, 0x11D42, 1}, {0x11D44, 0x11D45, 1}, {0x11D97, 0x11D97, 1},
		{0x11F41, 0x11F42, 1}, {0x16FF0, 0x16FF1, 1}, {0x1E08F, 0x1E08F, 1}, {0x1E130, 0x1E136, 1},
		{0x1E2AE, 0x1E2AE, 1}, {0x1E2EC, 0x1E2EF, 1}, {0x1E4EC, 0x1E4EF, 1},
	},
}
