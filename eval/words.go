package eval

import (
	"strings"
	"unicode"
)

// words returns the words of text in lower case and without a plural s, so that
// "Singers", "singer_id" and "singerID" share one: identifiers are cut at
// underscores and where capitals start.
func words(text string) []string {
	var out []string
	start := -1
	var last rune
	flush := func(end int) {
		if start >= 0 {
			out = append(out, stem(strings.ToLower(text[start:end])))
		}
		start = -1
	}
	for i, r := range text {
		isWord := unicode.IsLetter(r) || unicode.IsDigit(r)
		if !isWord || unicode.IsUpper(r) && unicode.IsLower(last) {
			flush(i)
		}
		if isWord && start < 0 {
			start = i
		}
		last = r
	}
	flush(len(text))
	return out
}

func stem(word string) string {
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") {
		return word[:len(word)-1]
	}
	return word
}

// contentWords returns the words of a clause that come from the schema or the
// question: not SQL's own, and not aliases such as t1.
func contentWords(clause string) []string {
	var out []string
	for _, w := range words(clause) {
		if !sqlWords[w] && !isAlias(w) {
			out = append(out, w)
		}
	}
	return out
}

func isAlias(word string) bool {
	return len(word) == 1 && !unicode.IsDigit(rune(word[0])) ||
		len(word) == 2 && word[0] == 't' && word[1] >= '0' && word[1] <= '9'
}

// sqlWords are keywords and common functions, as words spells them.
var sqlWords = func() map[string]bool {
	set := map[string]bool{}
	for _, w := range words(`select distinct all from where group by having order limit offset union intersect
		except join inner left right full outer cross natural on using as and or not in is null like glob between exists
		case when then else end asc desc with recursive values cast collate over partition window filter
		count sum avg min max total abs round length lower upper substr iif coalesce ifnull nullif strftime date
		integer int real text float varchar`) {
		set[w] = true
	}
	return set
}()

// wordSet returns the distinct words of text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words(text) {
		set[w] = true
	}
	return set
}

// distinct returns the distinct elements of list in the order of their first
// occurrence.
func distinct[T comparable](list []T) []T {
	seen := map[T]bool{}
	var out []T
	for _, x := range list {
		if !seen[x] {
			out = append(out, x)
		}
		seen[x] = true
	}
	return out
}

// missShare returns the share of a clause's content words that the question
// does not hold; 0 when there are none.
func missShare(clause string, question map[string]bool) float64 {
	missing, total := 0, 0
	for _, w := range contentWords(clause) {
		total++
		if !question[w] {
			missing++
		}
	}
	if total == 0 {
		return 0
	}
	return float64(missing) / float64(total)
}
