package tokenizer

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// The patterns again, as a regular expression engine reads them: alternatives in
// order, each greedy, each backtracking. A matcher returns the lengths in runes
// that it can match at the start, most preferred first.
type matcher func(text []rune) []int

// set matches one character.
func set(in func(rune) bool) matcher {
	return func(text []rune) []int {
		if len(text) > 0 && in(text[0]) {
			return []int{1}
		}
		return nil
	}
}

// repeat matches m at least low times, up to high times, preferably often.
func repeat(m matcher, low, high int) matcher {
	return func(text []rune) (ends []int) {
		if high > 0 {
			for _, n := range m(text) {
				for _, rest := range repeat(m, low-1, high-1)(text[n:]) {
					ends = append(ends, n+rest)
				}
			}
		}
		if low <= 0 {
			ends = append(ends, 0)
		}
		return ends
	}
}

// sequence matches one after the other.
func sequence(ms ...matcher) matcher {
	if len(ms) == 0 {
		return func([]rune) []int { return []int{0} }
	}
	return func(text []rune) (ends []int) {
		for _, n := range ms[0](text) {
			for _, rest := range sequence(ms[1:]...)(text[n:]) {
				ends = append(ends, n+rest)
			}
		}
		return ends
	}
}

func notBeforeText(text []rune) []int {
	if len(text) == 0 || unicode.IsSpace(text[0]) {
		return []int{0}
	}
	return nil
}

func oneOf(ms ...matcher) matcher {
	return func(text []rune) (ends []int) {
		for _, m := range ms {
			ends = append(ends, m(text)...)
		}
		return ends
	}
}

func foldedWord(word string) matcher {
	return func(text []rune) []int {
		if n := len(word); len(text) >= n && strings.EqualFold(string(text[:n]), word) {
			return []int{n}
		}
		return nil
	}
}

// engine builds the matcher of a pattern.
func engine(p pattern) matcher {
	const many = 64
	isLetter := unicode.IsLetter
	if p == qwen35Pattern {
		isLetter = func(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }
	}
	isNewline := func(r rune) bool { return r == '\r' || r == '\n' }
	isOther := func(r rune) bool { return !unicode.IsSpace(r) && !isLetter(r) && !unicode.IsNumber(r) }
	prefix := func(r rune) bool { return !isNewline(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	isSpace := set(unicode.IsSpace)
	return oneOf(
		oneOf(foldedWord("'s"), foldedWord("'t"), foldedWord("'re"), foldedWord("'ve"),
			foldedWord("'m"), foldedWord("'ll"), foldedWord("'d")),
		sequence(repeat(set(prefix), 0, 1), repeat(set(isLetter), 1, many)),
		set(unicode.IsNumber),
		sequence(repeat(foldedWord(" "), 0, 1), repeat(set(isOther), 1, many), repeat(set(isNewline), 0, many)),
		sequence(repeat(isSpace, 0, many), repeat(set(isNewline), 1, many)),
		sequence(repeat(isSpace, 1, many), notBeforeText),
		repeat(isSpace, 1, many),
	)
}

func TestSplitIsTheExpression(t *testing.T) {
	alphabet := []rune("aZsſSdDmtT'’lLrevVE0٣½ \t\u00A0\u3000\u0085\n\r.!<|>_-é漢ñ\u0301\u0903\u200D🙂\U000E0100")
	for _, p := range []pattern{qwen2Pattern, qwen35Pattern} {
		match := engine(p)
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.SliceOfN(rapid.SampledFrom(alphabet), 1, 12).Draw(t, "text")
			for len(text) > 0 {
				want := match(text)[0]
				got := len([]rune(string(text)[:p.next(string(text))]))
				if got != want {
					t.Fatalf("pattern %d: %q starts with a piece of %d characters, want %d", p, string(text), got, want)
				}
				text = text[want:]
			}
		})
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		p           pattern
		text, split string // pieces joined by ¦
	}{
		{qwen35Pattern, "SELECT T1.name FROM t  WHERE x>=10;\n\n", "SELECT¦ T¦1¦.name¦ FROM¦ t¦ ¦ WHERE¦ x¦>=¦1¦0¦;\n\n"},
		{qwen35Pattern, "it's I'LL it'ſ", "it¦'s¦ I¦'LL¦ it¦'ſ"},
		{qwen35Pattern, "  \n \t x", "  \n¦ \t¦ x"},
		{qwen35Pattern, "x   ", "x¦   "},
		{qwen2Pattern, "e\u0301t", "e¦\u0301t"},
		{qwen35Pattern, "e\u0301t", "e\u0301t"},
		{qwen35Pattern, "a\xFFb\xFF\xFE 1", "a¦\xFFb¦\xFF\xFE¦ ¦1"},
	} {
		var pieces []string
		for rest := c.text; rest != ""; {
			n := c.p.next(rest)
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if got := strings.Join(pieces, "¦"); got != c.split {
			t.Errorf("pattern %d splits %q as %q, want %q", c.p, c.text, got, c.split)
		}
	}
}

// testdata/classes.txt holds how the tokenizers library splits texts of every
// character; see benchmarks/tokenizer/classes_golden.py.
func TestEveryCharacterIsSplitAsTheLibraryDoes(t *testing.T) {
	golden, err := os.ReadFile("testdata/classes.txt")
	if err != nil {
		t.Fatal(err)
	}
	var starts []rune
	var wants []string
	for line := range strings.Lines(string(golden)) {
		start, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(start, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		starts, wants = append(starts, rune(n)), append(wants, want)
	}
	wrong := 0
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if !utf8.ValidRune(c) {
			continue
		}
		if len(starts) > 1 && starts[1] <= c {
			starts, wants = starts[1:], wants[1:]
		}
		var got []string
		for _, p := range []pattern{qwen2Pattern, qwen35Pattern} {
			for _, text := range []string{"a" + string(c) + string(c), string(c) + "!", "a" + string(c) + "b"} {
				var lengths []string
				for len(text) > 0 {
					n := p.next(text)
					lengths = append(lengths, strconv.Itoa(utf8.RuneCountInString(text[:n])))
					text = text[n:]
				}
				got = append(got, strings.Join(lengths, "+"))
			}
		}
		if got := strings.Join(got, " "); got != wants[0] {
			if wrong++; wrong < 10 {
				t.Errorf("%U: pieces %s, want %s", c, got, wants[0])
			}
		}
	}
	if len(starts) != 1 || wrong > 0 {
		t.Errorf("%d characters are split otherwise, %d lines are left", wrong, len(starts)-1)
	}
}
