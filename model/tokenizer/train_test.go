package tokenizer

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTrainKeepsWordsWhole(t *testing.T) {
	k := trainSmall(t, 1<<16)
	for _, text := range corpus {
		for rest := normalize(text); rest != ""; {
			n := k.pattern.next(rest)
			if ids := k.Encode(rest[:n], nil); len(ids) != 1 {
				t.Errorf("%q is %d tokens, want 1", rest[:n], len(ids))
			}
			rest = rest[n:]
		}
	}
}

func TestTrainSizeAndIDs(t *testing.T) {
	k := trainSmall(t, 300)
	if k.Size() != 300 {
		t.Errorf("size %d, want 300", k.Size())
	}
	if id, ok := k.ID("<|clause|>"); !ok || id != 298 {
		t.Errorf("<|clause|> has id %d, want 298", id)
	}
	for b := range 256 {
		if got := k.Bytes(int32(b)); got != string([]byte{byte(b)}) {
			t.Errorf("id %d is %q", b, got)
		}
	}
	for _, o := range []TrainOptions{
		{VocabSize: 255},
		{VocabSize: 256, Added: []string{"<|x|>"}},
		{VocabSize: 300, Added: []string{""}},
		{VocabSize: 300, Added: []string{"<|x|>", "<|x|>"}},
	} {
		if _, err := Train(slices.Values(corpus), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// TestTrainIsPairFrequency retrains the slow way: count all pairs of all words
// anew for every merge.
func TestTrainIsPairFrequency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("aab bc")), 0, 20, -1), 1, 8).Draw(t, "texts")
		k, err := Train(slices.Values(texts), TrainOptions{VocabSize: 300})
		if err != nil {
			t.Fatal(err)
		}
		slow, err := newByteLevel()
		if err != nil {
			t.Fatal(err)
		}
		for len(slow.tokens) < 300 {
			best, ok := mostFrequentPair(slow, texts)
			if !ok {
				break
			}
			token := slow.tokens[best.left] + slow.tokens[best.right]
			id, known := slow.ids[token]
			if !known {
				id = int32(slow.Size())
				if err := slow.define(token, id); err != nil {
					t.Fatal(err)
				}
			}
			if err := slow.table.add(best, id); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(k.table.merges, slow.table.merges) {
			t.Fatalf("merges %v, want %v", k.table.merges, slow.table.merges)
		}
	})
}

func mostFrequentPair(k *Tokenizer, texts []string) (best pair, ok bool) {
	counts := map[pair]int{}
	for _, text := range texts {
		for rest := text; rest != ""; {
			n := k.pattern.next(rest)
			var ids []int32
			for _, b := range []byte(rest[:n]) {
				ids = append(ids, k.byteIDs[b])
			}
			ids = k.table.reduce(ids, new(scratch)) // not Encode: the vocabulary grows, and it remembers pieces
			for i := 1; i < len(ids); i++ {
				counts[pair{ids[i-1], ids[i]}]++
			}
			rest = rest[n:]
		}
	}
	var queue queue[frequent]
	for p, count := range counts {
		queue.push(frequent{p, count})
	}
	if len(queue) == 0 {
		return pair{}, false
	}
	return queue.pop().pair, true
}

func TestTrainIgnoresTheOrderOfTexts(t *testing.T) {
	k := trainSmall(t, 420)
	reversed := slices.Clone(corpus)
	slices.Reverse(reversed)
	again, err := Train(slices.Values(reversed), TrainOptions{VocabSize: 420, Added: []string{"<|im_end|>", "<|clause|>", "<|"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.table.merges, again.table.merges) || !maps.Equal(k.ids, again.ids) {
		t.Error("another order of texts gives another vocabulary")
	}
}

func TestSaveAndLoad(t *testing.T) {
	k := trainSmall(t, 420)
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := k.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.table.merges, again.table.merges) || !slices.Equal(k.tokens, again.tokens) {
		t.Error("the vocabulary changed")
	}
	rapid.Check(t, func(t *rapid.T) {
		text := anyText(t)
		if got, want := again.Encode(text, nil), k.Encode(text, nil); !slices.Equal(got, want) {
			t.Fatalf("Encode(%q) = %v, want %v", text, got, want)
		}
	})
	second := filepath.Join(t.TempDir(), "again.json")
	if err := again.Save(second); err != nil {
		t.Fatal(err)
	}
	a, _ := os.ReadFile(path)
	b, _ := os.ReadFile(second)
	if string(a) != string(b) {
		t.Error("saving again gives another file")
	}
}

func TestSaveLeavesNothingHalfWritten(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "missing", "tokenizer.json")
	if err := trainSmall(t, 300).Save(path); err == nil || !strings.Contains(err.Error(), "save tokenizer") {
		t.Errorf("error %v", err)
	}
	blocked := filepath.Join(folder, "tokenizer.json")
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(blocked, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := trainSmall(t, 300).Save(blocked); err == nil {
		t.Error("no error where a folder is in the way")
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
