package exactmatch

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// tokenize cuts a query as the official parser does: texts in quotes are one token,
// and the rest is cut by the rules of an English word tokenizer (NLTK's, after the
// Penn Treebank). Those know brackets and commas but no operators: in "a=1" or
// "a>=1" nothing separates the name from the number, and such a query cannot be read.
func tokenize(query string) ([]string, error) {
	text, literals, err := hideLiterals(query)
	if err != nil {
		return nil, err
	}
	tokens := words(strings.ToLower(text))
	for i, t := range tokens {
		if literal, ok := literals[t]; ok {
			tokens[i] = literal
		}
	}
	return joinOperators(tokens), nil
}

// hideLiterals puts a word in place of each text in quotes. All quotes are the same:
// the parser does not see which one opened a text.
func hideLiterals(query string) (text string, literals map[string]string, err error) {
	query = strings.ReplaceAll(query, "'", `"`)
	parts := strings.Split(query, `"`)
	if len(parts)%2 == 0 {
		return "", nil, errors.New("a quote is not closed")
	}
	literals = map[string]string{}
	var out strings.Builder
	for i, part := range parts {
		if i%2 == 0 {
			out.WriteString(part)
			continue
		}
		key := fmt.Sprintf("__val_%d__", i)
		literals[key] = `"` + part + `"`
		out.WriteString(key)
	}
	return out.String(), literals, nil
}

// words separates words from punctuation.
func words(text string) []string {
	var out strings.Builder
	apart := func(s string) { out.WriteString(" " + s + " ") }
	runes := []rune(text)
	period := finalPeriod(runes)
	at := func(i int) rune {
		if i < len(runes) {
			return runes[i]
		}
		return 0
	}
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case c == '`' || c == '.' && at(i+1) == '.':
			start := i
			for at(i+1) == c {
				i++
			}
			apart(string(runes[start : i+1]))
		case i == period, strings.ContainsRune(";@#$%&?!*[](){}<>«»“”‘’„‒–—―", c):
			apart(string(c))
		case c == '-' && at(i+1) == '-':
			apart("--")
			i++
		case (c == ',' || c == ':') && !unicode.IsDigit(at(i+1)):
			apart(string(c))
			if next := at(i + 1); next == ',' || next == ':' {
				out.WriteRune(next) // the tokenizer looks at each character once
				i++
			}
		default:
			out.WriteRune(c)
		}
	}
	spaced := out.String()
	if slices.ContainsFunc(contractions, func(word string) bool { return strings.Contains(spaced, word) }) {
		spaced = contraction.ReplaceAllString(spaced, "$1$3$5$7$9$11 $2$4$6$8$10$12")
	}
	return strings.Fields(spaced)
}

// Words that the tokenizer cuts in two, for the sake of English.
var (
	contractions = []string{"cannot", "gimme", "gonna", "gotta", "lemme", "wanna"}
	contraction  = regexp.MustCompile(`\b(?:(can)(not)|(gim)(me)|(gon)(na)|(got)(ta)|(lem)(me)|(wan)(na))\b`)
)

// finalPeriod returns the index of the period that ends the text, or -1.
func finalPeriod(text []rune) int {
	i := len(text) - 1
	for i >= 0 && (unicode.IsSpace(text[i]) || strings.ContainsRune(`])}>»”’`, text[i])) {
		i--
	}
	if i > 0 && text[i] == '.' && text[i-1] != '.' {
		return i
	}
	return -1
}

// joinOperators makes one token of "!" and "=", and of the like.
func joinOperators(tokens []string) []string {
	for i := len(tokens) - 1; i > 0; i-- {
		if tokens[i] == "=" && slices.Contains([]string{"!", ">", "<"}, tokens[i-1]) {
			tokens = slices.Replace(tokens, i-1, i+1, tokens[i-1]+"=")
		}
	}
	return tokens
}
