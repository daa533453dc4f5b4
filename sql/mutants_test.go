package sql

import (
	"math/rand/v2"
	"strings"

	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/token"
)

// vocabulary is what mutate puts into a text: words with a meaning in SELECT,
// words that may be names, operators, and pieces that the tokenizer must judge.
var vocabulary = strings.Fields(`SELECT DISTINCT ALL FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET UNION INTERSECT EXCEPT VALUES WITH RECURSIVE
	MATERIALIZED AS JOIN LEFT RIGHT FULL OUTER INNER CROSS NATURAL ON USING AND OR NOT IN LIKE GLOB REGEXP MATCH ESCAPE BETWEEN IS NULL ISNULL
	NOTNULL CASE WHEN THEN ELSE END CAST COLLATE EXISTS ASC DESC NULLS FIRST LAST WINDOW OVER PARTITION ROWS RANGE GROUPS UNBOUNDED PRECEDING
	FOLLOWING CURRENT ROW EXCLUDE TIES NO OTHERS FILTER INDEXED RAISE IGNORE ABORT TRUE FALSE CURRENT_DATE CURRENT_TIME REPLACE KEY PRIMARY
	DEFAULT CHECK TABLE INDEX CREATE INSERT SET INTO TEMP EXPLAIN QUERY PLAN ROLLBACK WITHIN GENERATED ALWAYS ROWID WITHOUT RETURNING
	name id count max a , ( ) . ; * + - / % || & | << >> = == != <> < <= > >= -> ->> ~ ? ?1 ?0 :x @y $z #1 1 1.5 .5 1. 1e 1e5 0x1F 0x 1_000 1__0 1_
	0x1_f x'ab' x'a' X'' 'x' '' "x" "" [x] [] ` + "`x` ``" + ` 'open "open [open -- /* */ ! ^ { } \ : 9223372036854775808`)

// mutate changes a statement's text once to three times; other is another
// statement that lends parts. Most results are no longer SQL.
func mutate(rng *rand.Rand, text, other string) string {
	for range 1 + rng.IntN(3) {
		switch rng.IntN(8) {
		case 0:
			text = wrap(rng, text, other)
		case 1, 2, 3:
			text = splice(rng, text, other)
		default:
			text = changeTokens(rng, text, other)
		}
	}
	return text
}

// wrap puts whole statements together.
func wrap(rng *rand.Rand, text, other string) string {
	text, other = strings.TrimRight(text, "; \n"), strings.TrimRight(other, "; \n")
	form := one(rng, "SELECT * FROM (A)", "SELECT 1 FROM (A) AS x, (B) y ON x.id", "A UNION B", "A EXCEPT B", "A INTERSECT VALUES (1)",
		"SELECT EXISTS (A)", "SELECT (A) + 1, (B)", "WITH c AS (A) B", "WITH c(x, y) AS NOT MATERIALIZED (A), d AS (B) SELECT * FROM c, d",
		"SELECT CASE WHEN 1 IN (A) THEN (B) END", "A; B", "SELECT 1 WHERE 1 NOT IN (A) ORDER BY (B)", "(A)", "SELECT (A) COLLATE nocase LIMIT (B)",
		"VALUES ((A), (B))", "SELECT count(*) FILTER (WHERE (A)) FROM (B)", "EXPLAIN A", "SELECT (1, 2) IN (A)", "SELECT NOT EXISTS (A) IS NULL")
	return strings.NewReplacer("A", text, "B", other).Replace(form)
}

// splice puts a part of one statement's tree in the place of a part of another's,
// most of the time of the same kind.
func splice(rng *rand.Rand, text, other string) string {
	a, errA := Parse(text)
	b, errB := Parse(other)
	if errA != nil || errB != nil {
		return changeTokens(rng, text, other)
	}
	var from, into []*Node
	Walk(b, func(n *Node) bool { from = append(from, n); return true })
	Walk(a, func(n *Node) bool { into = append(into, n); return true })
	source := from[rng.IntN(len(from))]
	target := into[rng.IntN(len(into))]
	for range 20 {
		if target.Kind == source.Kind {
			break
		}
		target = into[rng.IntN(len(into))]
	}
	return text[:target.Start] + source.Text(other) + text[target.End:]
}

// changeTokens deletes, doubles, swaps, replaces or inserts a few tokens, or cuts
// the text off.
func changeTokens(rng *rand.Rand, text, other string) string {
	words := tokenTexts(text)
	if len(words) < 2 {
		return text
	}
	i, j := rng.IntN(len(words)), rng.IntN(len(words))
	word := one(rng, vocabulary...)
	if more := tokenTexts(other); rng.IntN(3) == 0 && len(more) > 0 {
		word = more[rng.IntN(len(more))]
	}
	switch rng.IntN(7) {
	case 0:
		words = append(words[:i:i], words[i+1:]...)
	case 1:
		i, j = min(i, j), max(i, j)
		words = append(words[:i:i], words[min(j, i+4):]...)
	case 2:
		words = append(words[:i+1:i+1], words[i:]...)
	case 3:
		words[i], words[j] = words[j], words[i]
	case 4:
		words[i] = word
	case 5:
		words = append(words[:i:i], append([]string{word}, words[i:]...)...)
	case 6:
		if rng.IntN(4) == 0 {
			return text[:rng.IntN(len(text)+1)]
		}
		words = words[:i+1]
	}
	return strings.Join(words, one(rng, " ", " ", " ", "\n", " /**/ "))
}

// tokenTexts are the texts of the tokens, without white space.
func tokenTexts(text string) (words []string) {
	for _, t := range lexer.Lex(text) {
		if t.Kind != token.EOF {
			words = append(words, t.Text(text))
		}
	}
	return words
}
