package generate

import "caper/model/tokenizer"

// pattern is a stop string, prepared for a search that looks at each byte once
// (Knuth, Morris and Pratt 1977).
type pattern struct {
	text string
	// fall[n] is the length of the longest proper end of text[:n] that text begins
	// with.
	fall []int
}

func newPattern(text string) *pattern {
	p := &pattern{text, make([]int, len(text)+1)}
	for n, k := 1, 0; n < len(text); n++ {
		for k > 0 && text[n] != text[k] {
			k = p.fall[k]
		}
		if text[n] == text[k] {
			k++
		}
		p.fall[n+1] = k
	}
	return p
}

// next returns how much of the pattern the text ends with after byte b, if it ended
// with n bytes of it before.
func (p *pattern) next(n int, b byte) int {
	for n > 0 && (n == len(p.text) || p.text[n] != b) {
		n = p.fall[n]
	}
	if p.text[n] == b {
		n++
	}
	return n
}

// matcher looks for stop strings in the text of a sample as it grows.
type matcher struct {
	decoder  *tokenizer.Decoder
	patterns []*pattern
	matched  []int // bytes of each pattern that the text ends with
	length   int   // of the text
	cut      int   // where the stop string begins, once there is one
}

// next takes a token and reports whether the text contains a stop string with it: the
// one that ends first, of those that end together the longest.
func (m *matcher) next(id int32) bool {
	text := m.decoder.Next(id)
	for i := range len(text) {
		m.length++
		found := 0
		for j, p := range m.patterns {
			m.matched[j] = p.next(m.matched[j], text[i])
			if m.matched[j] == len(p.text) {
				found = max(found, len(p.text))
			}
		}
		if found > 0 {
			m.cut = m.length - found
			return true
		}
	}
	return false
}
