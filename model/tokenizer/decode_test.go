package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// checkStream decodes ids one by one and checks what a reader of the stream sees.
func checkStream(t interface {
	Helper()
	Fatalf(string, ...any)
}, k *Tokenizer, ids []int32, skipSpecial bool) {
	t.Helper()
	d := k.Decoder(skipSpecial)
	var seen strings.Builder
	for i, id := range ids {
		text := d.Next(id)
		if !utf8.ValidString(text) {
			t.Fatalf("after %v: %q is not UTF-8", ids[:i+1], text)
		}
		seen.WriteString(text)
		// Nothing is held back without need: what was seen and the bytes that
		// may yet become a character are all there is.
		if whole := k.Decode(ids[:i+1], skipSpecial); !strings.HasPrefix(whole, seen.String()) || len(whole)-seen.Len() > len("\uFFFD") {
			t.Fatalf("after %v: seen %q of %q", ids[:i+1], seen.String(), whole)
		}
	}
	seen.WriteString(d.Rest())
	if want := k.Decode(ids, skipSpecial); seen.String() != want {
		t.Fatalf("%v: the stream shows %q, Decode %q", ids, seen.String(), want)
	}
	if rest := d.Rest(); rest != "" {
		t.Fatalf("%v: %q is left over twice", ids, rest)
	}
}

func TestStreamShowsWhatDecodeShows(t *testing.T) {
	k := trainSmall(t, 400)
	rapid.Check(t, func(t *rapid.T) {
		ids := k.Encode(anyText(t), nil)
		// Bytes of the beginnings and middles of characters, in any order.
		broken := rapid.SliceOfN(rapid.SampledFrom([]int32{-1, 'a', 0x82, 0xA0, 0xC3, 0xE2, 0xED, 0xF0, 0x9F, 0xF4, 0xFF, 1 << 20}), 0, 8).Draw(t, "broken")
		at := rapid.IntRange(0, len(ids)).Draw(t, "at")
		ids = append(ids[:at:at], append(broken, ids[at:]...)...)
		checkStream(t, k, ids, rapid.Bool().Draw(t, "skip special"))
	})
}

func TestStreamHoldsBackHalfCharacters(t *testing.T) {
	k := trainSmall(t, 400)
	d := k.Decoder(true)
	for _, c := range []struct {
		id   int32
		text string
	}{{'a', "a"}, {0xF0, ""}, {0x9F, ""}, {0x99, ""}, {0x82, "🙂"}, {0xE2, ""}, {'b', "\uFFFDb"}, {0xE2, ""}, {0x82, ""}} {
		if got := d.Next(c.id); got != c.text {
			t.Errorf("byte %#x shows %q, want %q", c.id, got, c.text)
		}
	}
	if got := d.Rest(); got != "\uFFFD" {
		t.Errorf("rest %q, want U+FFFD", got)
	}
}

func TestStreamAllocatesNothingForWholeCharacters(t *testing.T) {
	k := trainSmall(t, 400)
	ids := k.Encode(corpus[0], nil)
	d := k.Decoder(false)
	if n := testing.AllocsPerRun(100, func() {
		for _, id := range ids {
			d.Next(id)
		}
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("a\xF0\x9F\x99\x82\xE2\x82"), true)
	f.Add([]byte("\xED\xA0\x80\xF4\x90"), false)
	k := trainSmall(f, 400)
	f.Fuzz(func(t *testing.T, bytes []byte, skipSpecial bool) {
		if len(bytes) > 1<<10 {
			return // the check is quadratic
		}
		var ids []int32
		for i, b := range bytes {
			ids = append(ids, int32(b)+int32(i%2*144)) // every other one from the whole vocabulary
		}
		checkStream(t, k, ids, skipSpecial)
	})
}
