package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The golden files hold what Hugging Face's tokenizers library gives. They lie
// beside the repository; without them these tests skip.
const goldenFolder = "../../../shared/data/golden/tokenizer"

// golden opens a golden file, unpacked if need be.
func golden(t testing.TB, name string) io.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join(goldenFolder, name))
	if err != nil {
		t.Skipf("no golden data: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	if !strings.HasSuffix(name, ".gz") {
		return f
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// loadGolden loads a golden tokenizer.
func loadGolden(t testing.TB, name string) *Tokenizer {
	t.Helper()
	text, err := io.ReadAll(golden(t, name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

type goldenLine struct {
	Category string  `json:"cat"`
	Text     string  `json:"text"`
	IDs      []int32 `json:"ids"`
	// Decoded is absent when it equals Text, DecodedSkipSpecial when it equals
	// Decoded.
	Decoded            *string `json:"decoded"`
	DecodedSkipSpecial *string `json:"decoded_skip_special"`
}

func goldenLines(t testing.TB, name string) (lines []goldenLine) {
	t.Helper()
	scan := bufio.NewScanner(golden(t, name))
	scan.Buffer(nil, 1<<24)
	for scan.Scan() {
		var l goldenLine
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Decoded == nil {
			l.Decoded = &l.Text
		}
		if l.DecodedSkipSpecial == nil {
			l.DecodedSkipSpecial = l.Decoded
		}
		lines = append(lines, l)
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

var goldenTokenizers = []struct{ name, file string }{
	{"qwen3", "qwen3_tokenizer.json.gz"},
	{"small", "small_tokenizer.json"},
}

func TestGolden(t *testing.T) {
	for _, g := range goldenTokenizers {
		t.Run(g.name, func(t *testing.T) {
			k := loadGolden(t, g.file)
			lines := goldenLines(t, g.name+"_strings.jsonl.gz")
			if len(lines) != 2000 {
				t.Errorf("%d strings, want 2000", len(lines))
			}
			for _, l := range lines {
				if got := k.Encode(l.Text, nil); !slices.Equal(got, l.IDs) {
					t.Errorf("%s: Encode(%q) = %v, want %v", l.Category, l.Text, got, l.IDs)
				}
				checkDecode(t, k, l)
			}
			for _, l := range goldenLines(t, g.name+"_decode.jsonl.gz") {
				checkDecode(t, k, l)
			}
		})
	}
}

func checkDecode(t *testing.T, k *Tokenizer, l goldenLine) {
	t.Helper()
	if got := k.Decode(l.IDs, false); got != *l.Decoded {
		t.Errorf("Decode(%v) = %q, want %q", l.IDs, got, *l.Decoded)
	}
	if got := k.Decode(l.IDs, true); got != *l.DecodedSkipSpecial {
		t.Errorf("Decode(%v, skip special) = %q, want %q", l.IDs, got, *l.DecodedSkipSpecial)
	}
}

func TestGoldenConcurrently(t *testing.T) {
	k := loadGolden(t, "small_tokenizer.json")
	lines := goldenLines(t, "small_strings.jsonl.gz")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, l := range lines {
				if got := k.Encode(l.Text, nil); !slices.Equal(got, l.IDs) {
					t.Errorf("Encode(%q) = %v, want %v", l.Text, got, l.IDs)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkEncode(b *testing.B) {
	for _, g := range goldenTokenizers {
		b.Run(g.name, func(b *testing.B) {
			k := loadGolden(b, g.file)
			var text strings.Builder
			for _, l := range goldenLines(b, g.name+"_strings.jsonl.gz") {
				if l.Category == "sql" || l.Category == "schema" || l.Category == "question" {
					text.WriteString(l.Text)
				}
			}
			var ids []int32
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				ids = k.Encode(text.String(), ids[:0])
			}
		})
	}
}

func BenchmarkEncodeOneCharacter(b *testing.B) {
	k := loadGolden(b, "qwen3_tokenizer.json.gz")
	for _, c := range []string{"a", " ", "\n", "<", "é", "漢"} {
		b.Run(c, func(b *testing.B) {
			text := strings.Repeat(c, 1<<20/len(c))
			var ids []int32
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				ids = k.Encode(text, ids[:0])
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	text, err := io.ReadAll(golden(b, "qwen3_tokenizer.json.gz"))
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Load(path); err != nil {
			b.Fatal(err)
		}
	}
}
