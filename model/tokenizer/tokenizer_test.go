package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// corpus is text for a small vocabulary.
var corpus = []string{
	"SELECT name, age FROM singer WHERE country = 'France' ORDER BY age DESC LIMIT 3",
	"SELECT count(*) FROM stadium JOIN concert ON stadium.id = concert.stadium_id",
	"How many singers are from France, and how old are they?",
	"Combien de chanteurs e\u0301trangers ? Übergröße, 漢字 🙂",
	strings.Repeat("banana bandana ", 3),
}

func trainSmall(t testing.TB, size int) *Tokenizer {
	t.Helper()
	k, err := Train(slices.Values(corpus), TrainOptions{VocabSize: size, Added: []string{"<|im_end|>", "<|clause|>", "<|"}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// anyText draws text that visits every branch: words of the corpus, added
// tokens, restless characters, broken bytes.
func anyText(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom(strings.Fields(strings.Join(corpus, " "))),
		rapid.SampledFrom([]string{" ", "\n", "  ", "<|im_end|>", "<|clause|>", "<|", "'s", "\xFF", "\xE2\x82"}),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SampledFrom(restless).Draw(t, "character")) }),
		rapid.String(),
	), 0, 12).Draw(t, "parts")
	return strings.Join(parts, "")
}

func TestDecodeInvertsEncode(t *testing.T) {
	k := trainSmall(t, 400)
	rapid.Check(t, func(t *rapid.T) {
		text := anyText(t)
		want := validUTF8(normalize(text))
		if got := k.Decode(k.EncodeText(text, nil), true); got != want {
			t.Fatalf("Decode(EncodeText(%q)) = %q, want %q", text, got, want)
		}
	})
}

func TestEncodeTextForgesNoControlTokens(t *testing.T) {
	k := trainSmall(t, 400)
	first := int32(k.Size() - 3)
	rapid.Check(t, func(t *rapid.T) {
		text := anyText(t)
		for _, id := range k.EncodeText(text, nil) {
			if id >= first {
				t.Fatalf("EncodeText(%q) holds the added token %q", text, k.Bytes(id))
			}
		}
	})
}

func TestAddedTokensAreLeftmostThenLongest(t *testing.T) {
	k := trainSmall(t, 400)
	end, _ := k.ID("<|im_end|>")
	clause, _ := k.ID("<|clause|>")
	open, _ := k.ID("<|")
	if got, want := k.Encode("<|clause|><|<|im_end|>", nil), []int32{clause, open, end}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// The word goes on after the token, whatever it is normalised to.
	want := append(k.EncodeText("name", nil), end)
	want = append(want, k.EncodeText("\u0301x", nil)...)
	if got := k.Encode("name<|im_end|>\u0301x", nil); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEncodeAppends(t *testing.T) {
	k := trainSmall(t, 400)
	got := k.Encode("name", []int32{7})
	if want := append([]int32{7}, k.Encode("name", nil)...); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEncodeAllocatesNothing(t *testing.T) {
	k := trainSmall(t, 400)
	text := strings.Join(corpus[:3], "<|im_end|>")
	ids := k.EncodeText(text, nil)
	s := newScratch() // not from the pool, which the race detector empties at random
	k.appendText(ids[:0], text, s)
	if n := testing.AllocsPerRun(100, func() { ids = k.appendText(ids[:0], text, s) }); n > 0 {
		t.Errorf("%v allocations a call, want 0", n)
	}
}

// TestMergeIsLowestRankLeftmost compares both ways of merging with the
// definition, on random merges of few symbols, where pairs overlap and compete.
func TestMergeIsLowestRankLeftmost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table mergeTable
		symbol := rapid.Int32Range(0, 7)
		for range rapid.IntRange(0, 40).Draw(t, "merges") {
			if err := table.add(pair{symbol.Draw(t, "left"), symbol.Draw(t, "right")}, symbol.Draw(t, "id")); err != nil {
				t.Fatal(err)
			}
		}
		symbols := rapid.SliceOfN(symbol, 1, 150).Draw(t, "symbols")
		want := mergeByDefinition(&table, slices.Clone(symbols))
		if got := table.mergeLong(slices.Clone(symbols), new(scratch)); !slices.Equal(got, want) {
			t.Fatalf("mergeLong(%v) = %v, want %v", symbols, got, want)
		}
		if got := table.reduce(slices.Clone(symbols), new(scratch)); !slices.Equal(got, want) {
			t.Fatalf("reduce(%v) = %v, want %v", symbols, got, want)
		}
	})
}

func mergeByDefinition(table *mergeTable, symbols []int32) []int32 {
	for {
		best, at := noRank, -1
		for i := 1; i < len(symbols); i++ {
			if rank := table.rank(pair{symbols[i-1], symbols[i]}); rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			return symbols
		}
		symbols[at-1] = table.ids[best]
		symbols = slices.Delete(symbols, at, at+1)
	}
}

// TestOneLongPiece would run for hours if merging a piece took quadratic time.
func TestOneLongPiece(t *testing.T) {
	k := trainSmall(t, 400)
	for _, c := range []string{"a", " ", "\n", "<", "é", "\u0301", "\xFF"} {
		text := strings.Repeat(c, 1<<20/len(c))
		if got := k.Decode(k.Encode(text, nil), false); got != validUTF8(norm.NFC.String(text)) && c != "\u0301" {
			t.Errorf("1 MB of %q does not survive", c)
		}
	}
}

func TestDecodeReplacesMaximalSubparts(t *testing.T) {
	for _, c := range []struct{ bytes, want string }{
		{"a\xE2\x82", "a\uFFFD"},
		{"\xE2\x82\xE2\x82\xAC", "\uFFFD€"},
		{"\xF0\x9F\x99x", "\uFFFDx"},
		{"\xF0\x80\x80", "\uFFFD\uFFFD\uFFFD"},           // overlong: the second byte is out of range
		{"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},           // a surrogate
		{"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"}, // above U+10FFFF
		{"\xC0\xAF\xFF", "\uFFFD\uFFFD\uFFFD"},
	} {
		if got := validUTF8(c.bytes); got != c.want {
			t.Errorf("%q decodes to %q, want %q", c.bytes, got, c.want)
		}
	}
}

func TestUnknownIDs(t *testing.T) {
	k := trainSmall(t, 300)
	if got := k.Decode([]int32{-1, 'a', 1 << 30, 'b'}, false); got != "ab" {
		t.Errorf("got %q, want \"ab\"", got)
	}
	if _, ok := k.ID("no such token"); ok {
		t.Error("found a token that is not there")
	}
}

func TestLoadNamesTheFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := trainSmall(t, 300).Save(path); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, fault string }{
		{`"NFC"`, `"NFKC"`, `normalizer: type "NFKC"`},
		{`"BPE"`, `"Unigram"`, `model: type "Unigram"`},
		{`\\p{N}|`, `\\p{N}{1,3}|`, `\\p{N}{1,3}|`},
		{`"Isolated"`, `"Removed"`, `behavior "Removed"`},
		{`"decoder": {`, `"decoder": null, "x": {`, `decoder: type ""`},
		{`"dropout": null`, `"dropout": 0.1`, "dropout"},
		{`"byte_fallback": false`, `"byte_fallback": true`, "byte_fallback"},
		{`"unk_token": null`, `"unk_token": "?"`, "unk_token"},
		{`"lstrip": false`, `"lstrip": true`, `"<|im_end|>": single_word, lstrip`},
		{`"vocab": {`, `"vocab": {"zz": -1, `, `"zz" has id -1`},
		{`"vocab": {`, `"vocab": {"zz": 4000000000, `, "tokenizer.json:"},
		{`"vocab": {`, `"vocab": {"zz": 4000000, `, ""},
		{`"vocab": {`, `"vocab": {"zz": 4194304, `, `id 4194304, not in`},
		{`"vocab": {`, `"vocab": {"zz": 7, `, "both have id 7"},
		{`"a": 97`, `"zz": 97`, `no token "a" for byte 0x61`},
		{`"merges": [`, `"merges": [ "a", `, `model.merges: "a" is not two tokens`},
		{`"merges": [`, `"merges": [ ["z", "z"], `, `entry 0, "z" "z"`},
		{`"content": "<|im_end|>"`, `"content": ""`, "empty token"},
		{`"merges": [`, `"merges": ]`, "tokenizer.json:"},
	} {
		bad := strings.Replace(string(good), c.old, c.new, 1)
		if bad == string(good) {
			t.Fatalf("the file does not hold %s", c.old)
		}
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if c.fault == "" {
			if err != nil {
				t.Errorf("with %s: %v", c.new, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.fault) || !strings.Contains(err.Error(), "tokenizer.json") {
			t.Errorf("with %s: error %v does not name %s", c.new, err, c.fault)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error of several lines: %v", err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "absent.json")); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("absent file: %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}

// Older files write merges as "a b", and tokenizer_config.json may hold added
// tokens that tokenizer.json lacks.
func TestLoadOtherSpellings(t *testing.T) {
	k := trainSmall(t, 400)
	folder := t.TempDir()
	path := filepath.Join(folder, "tokenizer.json")
	if err := k.Save(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var merges []string
	for _, p := range k.table.merges {
		merges = append(merges, `"`+k.tokens[p.left]+" "+k.tokens[p.right]+`"`)
	}
	head, _, _ := strings.Cut(string(text), `"merges": [`)
	old := head + `"merges": [` + strings.Join(merges, ",") + "]}}"
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	config := `{"added_tokens_decoder": {"500": {"content": "<tts_pad>", "special": true}, "397": {"content": "<|im_end|>"}}}`
	if err := os.WriteFile(filepath.Join(folder, "tokenizer_config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.table.merges, k.table.merges) {
		t.Error("merges differ")
	}
	if got := again.Encode("<tts_pad>", nil); !slices.Equal(got, []int32{500}) {
		t.Errorf("token of tokenizer_config.json: %v, want [500]", got)
	}
	if again.Size() != 501 {
		t.Errorf("size %d, want 501", again.Size())
	}
}

func TestIgnoreMerges(t *testing.T) {
	k := trainSmall(t, 300)
	id := int32(k.Size())
	if err := k.define("Ġzebra", id); err != nil {
		t.Fatal(err)
	}
	if got := k.Encode(" zebra", nil); slices.Contains(got, id) {
		t.Errorf("no merge reaches the token, yet %v", got)
	}
	k.wholeFirst, k.scratches = true, scratches{} // and no piece is remembered
	if got := k.Encode(" zebra", nil); !slices.Equal(got, []int32{id}) {
		t.Errorf("got %v, want [%d]", got, id)
	}
}

func FuzzEncode(f *testing.F) {
	for _, text := range corpus {
		f.Add(text)
	}
	f.Add("\xF0\x9F\x99 <|im_end|>'\u017F\r\n")
	k := trainSmall(f, 400)
	f.Fuzz(func(t *testing.T, text string) {
		k.Encode(text, nil)
		want := validUTF8(normalize(text))
		if got := k.Decode(k.EncodeText(text, nil), false); got != want {
			t.Errorf("Decode(EncodeText(%q)) = %q, want %q", text, got, want)
		}
	})
}

func FuzzLoad(f *testing.F) {
	path := filepath.Join(f.TempDir(), "tokenizer.json")
	if err := trainSmall(f, 262).Save(path); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"normalizer": 1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if k, err := Load(path); err == nil {
			k.Decode(k.Encode("SELECT 1 <|im_end|>", nil), true)
		}
	})
}
