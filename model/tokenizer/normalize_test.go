package tokenizer

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// Characters that move, compose, decompose or block one another.
var restless = []rune("aAeo\u0041\u030A\u0300\u0301\u0302\u0304\u0308\u0323\u0327\u0345ÅÅé\u1EA5\u0344\u0958\u09C7\u09BE" +
	"\u1100\u1161\u11A8각가\u0D46\u0D3E\U000110A5\U000110BA\U0001D15E\u0F71\u0F72\u2ADC🙂 漢\uF900")

// restlessText draws text in which combining marks come in runs shorter than the
// 30 that the norm package lets stand.
func restlessText(t *rapid.T) string {
	text := rapid.SliceOfN(rapid.SampledFrom(restless), 0, 25).Draw(t, "text")
	return string(text)
}

func TestNormalizeIsNFC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := restlessText(t) + "x" + restlessText(t)
		if got, want := normalize(text), norm.NFC.String(text); got != want {
			t.Fatalf("normalize(%+q) = %+q, want %+q", text, got, want)
		}
	})
}

func TestNormalizeEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for _, text := range []string{string(r), "a" + string(r) + "\u0301", string(r) + "\u0323"} {
			got, want := normalize(text), norm.NFC.String(text)
			if got != want && !unicode.Is(newer, r) {
				t.Errorf("normalize(%+q) = %+q, want %+q", text, got, want)
			}
		}
	}
}

func TestNormalizeLongRun(t *testing.T) {
	below, above := strings.Repeat("\u0323", 50), strings.Repeat("\u0302", 50)
	text := strings.Repeat("a"+above+below, 20)
	want := strings.Repeat("\u1EAD"+below[2:]+above[2:], 20)
	if got := normalize(text); got != want {
		t.Errorf("normalize(%+q) = %+q, want %+q", text, got, want)
	}
}

func TestNormalizeKeepsNewerCharactersAndBrokenBytes(t *testing.T) {
	for _, text := range []string{
		"a\u08CA\u0323",        // U+08CA, class 230 since Unicode 14, stays before class 220
		"e\u08CA\u0301",        // and keeps the accent from the e
		"\U00011935\U00011930", // composes since Unicode 13
		"\U00011938",           // decomposes since Unicode 13
		"e\xFF\u0301",          // a broken byte stands between
		"\xE2\x82",             // a truncated character
	} {
		broken := text + "\u212B" // not normal, so that the quick check fails
		if got, want := normalize(broken), text+"\u00C5"; got != want {
			t.Errorf("normalize(%+q) = %+q, want %+q", broken, got, want)
		}
	}
}
