package sqlexec

import "strings"

// spelling writes a query in small letters and without white space or comments, as
// far as that cannot change what it means: texts of one spelling have the same
// tokens, and so the same rows. Evaluators strip words and models lay their queries
// out, so that a fifth of the texts of a run repeat another's spelling.
//
// A column may be called as an expression is written, and a name in quotes may ask
// for it; so a query with a quoted name that is more than a word is its own spelling.
func spelling(query string) string {
	out := make([]byte, 0, len(query))
	gap := false // white space or a comment stands ahead
	for i := 0; i < len(query); {
		n, quoted := verbatimAt(query[i:])
		switch {
		case isBlank(query[i]), n > 0 && !quoted:
			gap = true
			i += max(n, 1)
			continue
		case n > 0 && isName(query, i) && !isPlainName(query[i:i+n]), strings.IndexByte("?$@#:", query[i]) >= 0:
			return query // nor are parameters worth the care
		}
		if gap && len(out) > 0 && !partsItself(out[len(out)-1], query[i]) {
			out = append(out, ' ')
		}
		gap = false
		if quoted {
			out = append(out, query[i:i+n]...)
			i += n
			continue
		}
		c := query[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		out = append(out, c)
		i++
	}
	return string(out)
}

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

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }

// isName reports that what stands in quotes at offset i may be a name, and is no
// string.
func isName(query string, i int) bool { return query[i] != '\'' || i > 0 && query[i-1] == '.' }

// isPlainName reports that a quoted name is one word.
func isPlainName(quoted string) bool {
	if len(quoted) < 2 {
		return false
	}
	for i := 1; i < len(quoted)-1; i++ {
		if c := quoted[i]; !isWordByte(c) && c < 0x80 {
			return false
		}
	}
	return true
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
