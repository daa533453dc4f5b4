package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxID bounds the ids that a file may use, and with them the memory that a
// faulty file costs. The largest known vocabularies have 300,000.
const maxID = 1 << idBits

// Load reads a Hugging Face tokenizer.json. Added tokens that only a
// tokenizer_config.json beside it names (Qwen3.5 has seven) are taken from
// there. A file that asks for anything which this package does not do, another
// split pattern, another normaliser, dropout, is refused by name.
func Load(path string) (*Tokenizer, error) {
	var f tokenizerFile
	if err := readJSON(path, &f); err != nil {
		return nil, err
	}
	var config struct {
		AddedTokens map[string]fileToken `json:"added_tokens_decoder"`
	}
	configPath := filepath.Join(filepath.Dir(path), "tokenizer_config.json")
	if err := readJSON(configPath, &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := f.addMissing(config.AddedTokens); err != nil {
		return nil, fmt.Errorf("%s: added_tokens_decoder: %w", configPath, err)
	}
	k, err := f.tokenizer()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// readJSON reads one JSON document. Its errors name the file and the line.
func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read tokenizer: %w", err)
	}
	err = json.Unmarshal(text, into)
	offset := int64(-1)
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &mismatch):
		offset = mismatch.Offset
		err = fmt.Errorf("%s: %s is not what belongs there", mismatch.Field, mismatch.Value)
	}
	if offset >= 0 {
		line := 1 + bytes.Count(text[:min(offset, int64(len(text)))], []byte("\n"))
		return fmt.Errorf("%s:%d: %w", path, line, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// tokenizerFile is what matters of a tokenizer.json.
type tokenizerFile struct {
	AddedTokens   []fileToken `json:"added_tokens"`
	Normalizer    fileStep    `json:"normalizer"`
	PreTokenizer  fileStep    `json:"pre_tokenizer"`
	PostProcessor fileStep    `json:"post_processor"`
	Decoder       fileStep    `json:"decoder"`
	Model         fileModel   `json:"model"`
}

type fileToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// fileStep is any of the file's processing steps; Type says which fields count.
type fileStep struct {
	Type          string     `json:"type"`
	PreTokenizers []fileStep `json:"pretokenizers"` // Sequence
	Pattern       struct {   // Split
		Regex string
	} `json:"pattern"`
	Behavior       string `json:"behavior"`
	Invert         bool   `json:"invert"`
	AddPrefixSpace bool   `json:"add_prefix_space"` // ByteLevel
	UseRegex       bool   `json:"use_regex"`
}

type fileModel struct {
	Type          string           `json:"type"`
	Dropout       float64          `json:"dropout"`
	UnknownToken  string           `json:"unk_token"`
	SubwordPrefix string           `json:"continuing_subword_prefix"`
	WordSuffix    string           `json:"end_of_word_suffix"`
	ByteFallback  bool             `json:"byte_fallback"`
	IgnoreMerges  bool             `json:"ignore_merges"`
	Vocab         map[string]int32 `json:"vocab"`
	Merges        []fileMerge      `json:"merges"`
}

// fileMerge is a merge as "a b" (older files) or ["a", "b"].
type fileMerge struct{ left, right string }

// UnmarshalJSON implements json.Unmarshaler.
func (m *fileMerge) UnmarshalJSON(text []byte) error {
	var parts []string
	if text[0] == '[' {
		if err := json.Unmarshal(text, &parts); err != nil {
			return err
		}
	} else {
		var joined string
		if err := json.Unmarshal(text, &joined); err != nil {
			return err
		}
		parts = strings.Split(joined, " ")
	}
	if len(parts) != 2 {
		return fmt.Errorf("model.merges: %s is not two tokens", text)
	}
	m.left, m.right = parts[0], parts[1]
	return nil
}

// addMissing adds the tokens of an added_tokens_decoder, which is keyed by id,
// that the file does not hold.
func (f *tokenizerFile) addMissing(tokens map[string]fileToken) error {
	have := map[int32]bool{}
	for _, t := range f.AddedTokens {
		have[t.ID] = true
	}
	for key, t := range tokens {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is not a token id", key)
		}
		if t.ID = int32(id); !have[t.ID] {
			f.AddedTokens = append(f.AddedTokens, t)
		}
	}
	return nil
}

// tokenizer builds the tokenizer that the file describes.
func (f *tokenizerFile) tokenizer() (*Tokenizer, error) {
	pattern, err := f.steps()
	if err != nil {
		return nil, err
	}
	if err := f.Model.supported(); err != nil {
		return nil, err
	}
	k := &Tokenizer{pattern: pattern, wholeFirst: f.Model.IgnoreMerges, ids: map[string]int32{}}
	for token, id := range f.Model.Vocab {
		if err := k.define(token, id); err != nil {
			return nil, fmt.Errorf("model.vocab: %w", err)
		}
	}
	for b, r := range byteRunes {
		id, ok := k.ids[string(r)]
		if !ok {
			return nil, fmt.Errorf("model.vocab: no token %q for byte %#02x: not a byte-level vocabulary", string(r), b)
		}
		k.byteIDs[b] = id
	}
	if err := k.setMerges(f.Model.Merges); err != nil {
		return nil, err
	}
	if err := k.setAdded(f.AddedTokens); err != nil {
		return nil, err
	}
	return k, nil
}

// steps checks the processing steps around the model and returns the pattern.
func (f *tokenizerFile) steps() (pattern, error) {
	if f.Normalizer.Type != "NFC" {
		return 0, fmt.Errorf("normalizer: type %q is not supported, only NFC", f.Normalizer.Type)
	}
	if f.Decoder.Type != "ByteLevel" {
		return 0, fmt.Errorf("decoder: type %q is not supported, only ByteLevel", f.Decoder.Type)
	}
	if t := f.PostProcessor.Type; t != "ByteLevel" && t != "" {
		return 0, fmt.Errorf("post_processor: type %q is not supported, only ByteLevel", t)
	}
	pre := f.PreTokenizer
	if pre.Type != "Sequence" || len(pre.PreTokenizers) != 2 ||
		pre.PreTokenizers[0].Type != "Split" || pre.PreTokenizers[1].Type != "ByteLevel" {
		return 0, fmt.Errorf("pre_tokenizer: type %q is not supported, only a Sequence of Split and ByteLevel", pre.Type)
	}
	split, byteLevel := pre.PreTokenizers[0], pre.PreTokenizers[1]
	if split.Behavior != "Isolated" || split.Invert {
		return 0, fmt.Errorf("pre_tokenizer: Split with behavior %q, invert %t is not supported, only Isolated, false",
			split.Behavior, split.Invert)
	}
	if byteLevel.AddPrefixSpace || byteLevel.UseRegex {
		return 0, errors.New("pre_tokenizer: ByteLevel with add_prefix_space or use_regex is not supported")
	}
	p, err := patternOf(split.Pattern.Regex)
	if err != nil {
		return 0, fmt.Errorf("pre_tokenizer: %w", err)
	}
	return p, nil
}

// supported refuses the options of BPE models that Qwen's do not use.
func (m *fileModel) supported() error {
	switch {
	case m.Type != "BPE":
		return fmt.Errorf("model: type %q is not supported, only BPE", m.Type)
	case m.Dropout != 0:
		return errors.New("model: dropout is not supported")
	case m.UnknownToken != "":
		return errors.New("model: unk_token is not supported: a byte-level vocabulary knows every byte")
	case m.SubwordPrefix != "" || m.WordSuffix != "":
		return errors.New("model: continuing_subword_prefix and end_of_word_suffix are not supported")
	case m.ByteFallback:
		return errors.New("model: byte_fallback is not supported")
	}
	return nil
}

// define gives an id to a token.
func (k *Tokenizer) define(token string, id int32) error {
	if token == "" {
		return fmt.Errorf("id %d has an empty token", id)
	}
	if id < 0 || id >= maxID {
		return fmt.Errorf("token %q has id %d, not in [0, %d)", token, id, maxID)
	}
	if missing := int(id) + 1 - len(k.tokens); missing > 0 {
		k.tokens = append(k.tokens, make([]string, missing)...)
		k.bytes = append(k.bytes, make([]string, missing)...)
		k.special = append(k.special, make([]bool, missing)...)
	}
	if other := k.tokens[id]; other != "" && other != token {
		return fmt.Errorf("tokens %q and %q both have id %d", min(token, other), max(token, other), id)
	}
	if other, ok := k.ids[token]; ok && other != id {
		return fmt.Errorf("token %q has ids %d and %d", token, other, id)
	}
	k.tokens[id], k.bytes[id], k.ids[token] = token, unspell(token), id
	return nil
}

// setMerges fills the merge table. The place in the list is the rank.
func (k *Tokenizer) setMerges(list []fileMerge) error {
	for rank, m := range list {
		left, okLeft := k.ids[m.left]
		right, okRight := k.ids[m.right]
		id, ok := k.ids[m.left+m.right]
		if !okLeft || !okRight || !ok {
			return fmt.Errorf("model.merges: entry %d, %q %q: both and their union must be in model.vocab", rank, m.left, m.right)
		}
		if err := k.table.add(pair{left, right}, id); err != nil {
			return fmt.Errorf("model.merges: %w", err)
		}
	}
	k.setByteRanks()
	return nil
}

// setByteRanks fills byteRanks once all merges are known.
func (k *Tokenizer) setByteRanks() {
	for left := range k.byteRanks {
		for right := range k.byteRanks[left] {
			k.byteRanks[left][right] = k.table.rank(pair{k.byteIDs[left], k.byteIDs[right]})
		}
	}
}

// setAdded defines the added tokens.
func (k *Tokenizer) setAdded(list []fileToken) error {
	var added []addedToken
	for _, t := range list {
		if t.SingleWord || t.LStrip || t.RStrip || t.Normalized {
			return fmt.Errorf("added_tokens: %q: single_word, lstrip, rstrip and normalized are not supported", t.Content)
		}
		_, inVocab := k.ids[t.Content]
		if err := k.define(t.Content, t.ID); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
		k.special[t.ID] = t.Special
		added = append(added, addedToken{t.ID, t.Content, t.Special, inVocab})
	}
	k.added = newAddedTokens(added)
	return nil
}
