package tokenizer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// savedFile is tokenizer.json as Save writes it, keys in the library's order.
type savedFile struct {
	Version       string      `json:"version"`
	Truncation    *struct{}   `json:"truncation"`
	Padding       *struct{}   `json:"padding"`
	AddedTokens   []fileToken `json:"added_tokens"`
	Normalizer    any         `json:"normalizer"`
	PreTokenizer  any         `json:"pre_tokenizer"`
	PostProcessor any         `json:"post_processor"`
	Decoder       any         `json:"decoder"`
	Model         savedModel  `json:"model"`
}

type savedModel struct {
	Type          string           `json:"type"`
	Dropout       *float64         `json:"dropout"`
	UnknownToken  *string          `json:"unk_token"`
	SubwordPrefix *string          `json:"continuing_subword_prefix"`
	WordSuffix    *string          `json:"end_of_word_suffix"`
	FuseUnknown   bool             `json:"fuse_unk"`
	ByteFallback  bool             `json:"byte_fallback"`
	IgnoreMerges  bool             `json:"ignore_merges"`
	Vocab         map[string]int32 `json:"vocab"`
	Merges        [][2]string      `json:"merges"`
}

// The steps around the model are the same for every tokenizer that Load accepts,
// but for the split expression.
var (
	nfcStep       = map[string]any{"type": "NFC"}
	byteLevelStep = map[string]any{
		"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false,
	}
)

func splitStep(expression string) any {
	return map[string]any{
		"type": "Split", "pattern": map[string]any{"Regex": expression}, "behavior": "Isolated", "invert": false,
	}
}

// Save writes the tokenizer as a tokenizer.json that the tokenizers library
// loads. The file appears under its name only once it is whole and was read
// back.
func (k *Tokenizer) Save(path string) error {
	partial := path + ".partial"
	err := k.write(partial)
	if err == nil {
		_, err = Load(partial)
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		os.Remove(partial)
		return fmt.Errorf("save tokenizer: %w", err)
	}
	return nil
}

func (k *Tokenizer) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(k.saved()); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// saved describes the tokenizer as a file.
func (k *Tokenizer) saved() savedFile {
	model := savedModel{Type: "BPE", IgnoreMerges: k.wholeFirst, Vocab: map[string]int32{}, Merges: [][2]string{}}
	for token, id := range k.ids {
		model.Vocab[token] = id
	}
	tokens := []fileToken{}
	for _, t := range k.added.list {
		tokens = append(tokens, fileToken{ID: t.id, Content: t.text, Special: t.special})
		if !t.inVocab {
			delete(model.Vocab, t.text)
		}
	}
	for _, p := range k.table.merges {
		model.Merges = append(model.Merges, [2]string{k.tokens[p.left], k.tokens[p.right]})
	}
	return savedFile{
		Version:     "1.0",
		AddedTokens: tokens,
		Normalizer:  nfcStep,
		PreTokenizer: map[string]any{
			"type": "Sequence", "pretokenizers": []any{splitStep(expressions[k.pattern]), byteLevelStep},
		},
		PostProcessor: byteLevelStep,
		Decoder:       byteLevelStep,
		Model:         model,
	}
}
