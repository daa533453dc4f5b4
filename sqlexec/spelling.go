package sqlexec

import "strings"

// spelling writes a query in small letters and without white space or comments, as
// far as that cannot change what it means: texts of one spelling have the same
// tokens, and so the same rows. Evaluators strip words and models lay their queries
// out, so that a fifth of the texts of a run repeat another's spelling.
//
// A column may be called as an expression is written, and a name in quotes may ask
// for it. So a query is its own spelling where a quoted name that is more than a word
// stands elsewhere in it, too.
func spelling(query string) string {
	out := make([]byte, 0, len(query))
	gap := false // white space or a comment stands ahead
	for i := 0; i < len(query); {
		c := query[i]
		n, quoted := 0, false
		switch roles[c] {
		case blank:
			gap = true
			i++
			continue
		case unusual:
			return query // not worth the care
		case opens:
			if n, quoted = verbatimAt(query[i:]); n > 0 && !quoted {
				gap = true
				i += n
				continue
			}
			if quoted && isName(query, i) && isRepeated(query, query[i:i+n]) {
				return query
			}
		}
		if gap && len(out) > 0 && !partsItself(out[len(out)-1], c) {
			out = append(out, ' ')
		}
		gap = false
		if quoted {
			out = append(out, query[i:i+n]...)
			i += n
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		out = append(out, c)
		i++
	}
	return string(out)
}

// role is what a byte may do in a query, where it is not quoted.
type role byte

const (
	inside  role = iota // belongs to a token
	blank               // is white space
	unusual             // begins a bind parameter, or is white space at times
	opens               // begins a quoted text or a comment, or is a token: - and /
)

var roles = func() (table [256]role) {
	for bytes, r := range map[string]role{" \t\n\f\r": blank, "?$@#:\v": unusual, "'\"`[-/": opens} {
		for i := range len(bytes) {
			table[bytes[i]] = r
		}
	}
	return table
}()

// verbatimAt is the length of the string, quoted name or comment that text starts
// with, 0 for none. One that is not closed runs to the end.
func verbatimAt(text string) (n int, quoted bool) {
	end := ""
	switch {
	case text[0] == '\'' || text[0] == '"' || text[0] == '`':
		end, quoted = text[:1], true // a doubled quote ends one and starts another
	case text[0] == '[':
		end, quoted = "]", true
	case strings.HasPrefix(text, "--"):
		end = "\n"
	case strings.HasPrefix(text, "/*") && len(text) > 2:
		end = "*/"
	default:
		return 0, false
	}
	start := 1
	if !quoted {
		start = 2
	}
	if at := strings.Index(text[start:], end); at >= 0 {
		return start + at + len(end), quoted
	}
	return len(text), quoted
}

// isName reports that what stands in quotes at offset i may be a name, and is no
// string.
func isName(query string, i int) bool { return query[i] != '\'' || i > 0 && query[i-1] == '.' }

// isRepeated reports that the query holds what stands in quotes twice, in whatever
// case, and that it is more than a word.
func isRepeated(query, quoted string) bool {
	content := quoted[1:max(len(quoted)-1, 1)]
	isMore := strings.ContainsFunc(content, func(r rune) bool { return r < 0x80 && !isWordByte(byte(r)) })
	return isMore && strings.Count(strings.ToLower(query), strings.ToLower(content)) > 1
}

// partsItself reports that two bytes belong to different tokens with or without white
// space between them: parentheses, commas and semicolons make tokens of their own, and
// so does a comparison or a star beside what is no sign. (Plus and minus may belong to
// a number, a dot too.)
func partsItself(before, behind byte) bool {
	const alone, signs, unsure = "(),;", "=<>!*/%|&~", "+-"
	has := func(set string, c byte) bool { return strings.IndexByte(set, c) >= 0 }
	if has(alone, before) || has(alone, behind) {
		return true
	}
	isSign := func(c byte) bool { return has(signs, c) || has(unsure, c) }
	return has(signs, before) && !isSign(behind) || has(signs, behind) && !isSign(before)
}
