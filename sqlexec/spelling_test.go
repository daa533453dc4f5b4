package sqlexec

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/sqlc-dev/meyer/lexer"
	"github.com/sqlc-dev/meyer/token"
	"pgregory.net/rapid"
)

func TestSpelling(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"SELECT  count( * ) ,Name\nFROM t  -- all\nWHERE a  >=  1 ;", "select count(*),name from t where a>=1;"},
		{"SELECT 'It''s  A', \"Big\" FROM [T]", "select 'It''s  A',\"Big\" from [T]"},
		{"SELECT a- -1, b > -1, x 'ab', 1 .5, 1e +5, a ! = b", "select a- -1,b> -1,x 'ab',1 .5,1e +5,a! =b"},
		{"SELECT \"count( *)\" FROM (SELECT count( *) FROM t)", "SELECT \"count( *)\" FROM (SELECT count( *) FROM t)"},
		{"SELECT s.'count( *)' FROM (SELECT count( *) FROM t) s", "SELECT s.'count( *)' FROM (SELECT count( *) FROM t) s"},
		{"SELECT a  FROM t WHERE b = \"New  York\"", "select a from t where b=\"New  York\""},
		{"SELECT \"count( *)\" FROM (SELECT count(*)  FROM t)", "select \"count( *)\" from(select count(*)from t)"},
		{"SELECT \"Count( *)\" FROM (SELECT count( *) FROM t)", "SELECT \"Count( *)\" FROM (SELECT count( *) FROM t)"},
		{"SELECT ? ", "SELECT ? "},
		{"SELECT a /* of */ b/*", "select a b/*"},
	} {
		if have := spelling(c.query); have != c.want {
			t.Errorf("%s\nhave %s\nwant %s", c.query, have, c.want)
		}
	}
}

// tokens are the tokens of a text, in small letters but for what stands in quotes.
func tokens(text string) (list []string) {
	for _, l := range lexer.Lex(text) {
		word := text[l.Pos:l.End]
		if l.Kind != token.EOF && strings.IndexByte("'\"`[", word[0]) < 0 {
			word = strings.ToLower(word)
		}
		list = append(list, word)
	}
	return list
}

// A spelling has the tokens of its text, and is its own spelling.
func TestSpellingKeepsTokens(t *testing.T) {
	parts := []string{"a", "E", "1", "1.", "1e", ".", "'s  S'", "''", "\"N\"", "`n`", "[N]", "x", "+", "-", "*", "/", "=", "<", ">", "!", "|", "&", "~",
		"(", ")", ",", ";", " ", "  ", "\n", "\t", "\v", "--c\n", "--", "/*c*/", "/*", "*/", "?", "$a", "ö", "%"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "parts"), "")
		s := spelling(text)
		if have, want := strings.Join(tokens(s), "\x00"), strings.Join(tokens(text), "\x00"); have != want {
			t.Fatalf("%q is spelled %q:\n%q\n%q", text, s, have, want)
		}
		if again := spelling(s); again != s {
			t.Fatalf("%q is spelled %q, and that %q", text, s, again)
		}
	})
}

// A batch gives what its queries give alone, whatever some of them do; a worker that
// it loses costs no result.
func TestPrefetch(t *testing.T) {
	d := openShop(t)
	long := "SELECT printf('%.*c', 100000, 'x')"
	stuck := "SELECT instr(zeroblob(1000000), CAST(zeroblob(500000) || 'x' AS BLOB))"
	quick := DefaultLimits()
	quick.Timeout = 50e6
	hurried, err := Open(d.Path(), quick)
	if err != nil {
		t.Fatal(err)
	}
	defer hurried.Close()
	for _, c := range []struct {
		db      *Database
		queries []string
	}{
		{d, []string{"SELECT * FROM item", "SELECT nope", "SELECT FROM", "SELECT 1; SELECT 2", "SELECT count(*) FROM item"}},
		{d, []string{long, "SELECT 1", long + " AS y", long + ", 1"}},
		{d, []string{"SELECT 1", "SELECT '\x00'", "SELECT '" + strings.Repeat("x", 50_000) + "'"}},
		{hurried, []string{"SELECT 1", stuck, "SELECT 2"}},
	} {
		cache := NewCache(1 << 30)
		cache.Prefetch(context.Background(), c.db, append(c.queries, c.queries...))
		for _, q := range c.queries {
			have, haveErr := cache.Record(context.Background(), c.db, q)
			want, wantErr := c.db.record(context.Background(), q)
			if (haveErr == nil) != (wantErr == nil) || haveErr != nil && haveErr.Error() != wantErr.Error() ||
				haveErr == nil && !have.isEqual(want) {
				t.Errorf("%.80s: %v, %v; alone %v, %v", q, have, haveErr, want, wantErr)
			}
		}
	}
}

// Stripping DISTINCT by hand is stripping it by a regular expression.
func TestStripDistinct(t *testing.T) {
	verbatim := regexp.MustCompile(`(?s)'[^']*'?|"[^"]*"?|` + "`[^`]*`?" + `|\[[^\]]*\]?|--[^\n]*|/\*.*?(?:\*/|$)`)
	distinct := regexp.MustCompile(`(?i)\bDISTINCT\b`)
	parts := []string{"distinct", "DISTINCT", " ", "x", "_", "1", "ö", "'", "\"", "`", "[", "]", "--", "\n", "/*", "*/", "(", ","}
	rapid.Check(t, func(t *rapid.T) {
		query := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 10).Draw(t, "parts"), "")
		want, at := "", 0
		for _, span := range verbatim.FindAllStringIndex(query, -1) {
			want += distinct.ReplaceAllString(query[at:span[0]], "") + query[span[0]:span[1]]
			at = span[1]
		}
		want += distinct.ReplaceAllString(query[at:], "")
		if have := stripDistinct(query); have != want {
			t.Fatalf("%q becomes %q, not %q", query, have, want)
		}
	})
}
