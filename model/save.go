package model

import (
	"fmt"
	"os"
	"path/filepath"

	"caper/model/decoder"
	"caper/model/safetensors"
)

const (
	tokenizerName       = "tokenizer.json"
	tokenizerConfigName = "tokenizer_config.json"
)

// Save writes the model to dir in Hugging Face layout with weights in F32: the files
// that Load, transformers and other engines read. Each file is written under a
// temporary name and renamed; config.json comes last, so a folder that has it is whole.
func (m *Model) Save(dir string) error { return m.SaveAs(dir, safetensors.F32) }

// SaveAs is Save with weights in dtype, F32 or BF16. In BF16 the weights that
// official checkpoints keep in F32 stay in it.
func (m *Model) SaveAs(dir string, dtype safetensors.DType) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Files of an earlier save: its config.json would vouch for half a folder, and its
	// index would be believed before the single file.
	for _, name := range []string{ConfigName, safetensors.IndexName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	if err := m.saveWeights(dir, dtype); err != nil {
		return err
	}
	if m.Tokenizer != nil {
		if err := m.saveTokenizer(dir); err != nil {
			return err
		}
	}
	name := "float32"
	if dtype == safetensors.BF16 {
		name = "bfloat16"
	}
	config, err := m.Config.object(name)
	if err != nil {
		return fmt.Errorf("%s: %w", ConfigName, err)
	}
	return writeJSON(filepath.Join(dir, ConfigName), config)
}

func (m *Model) saveWeights(dir string, dtype safetensors.DType) error {
	entries := make([]safetensors.Entry, len(m.parameters))
	for i, p := range m.parameters {
		entries[i] = safetensors.Entry{Name: p.Name, DType: dtype, Shape: p.Shape, F32: p.F32, F64: p.F64}
		if p.Float32 {
			entries[i].DType = safetensors.F32
		}
	}
	// transformers refuses files without this key.
	return safetensors.Write(filepath.Join(dir, safetensors.SingleName), entries, map[string]string{"format": "pt"})
}

// saveTokenizer writes tokenizer.json and the tokenizer_config.json without which
// transformers would guess a tokenizer class from the model type.
func (m *Model) saveTokenizer(dir string) error {
	if err := m.Tokenizer.Save(filepath.Join(dir, tokenizerName)); err != nil {
		return err
	}
	path := filepath.Join(dir, tokenizerConfigName)
	if m.tokenizerConfig != nil {
		return writeFile(path, m.tokenizerConfig)
	}
	config := decoder.Object{"tokenizer_class": []byte(`"PreTrainedTokenizerFast"`), "clean_up_tokenization_spaces": []byte("false")}
	if m.Config.EndToken != "" {
		if err := config.Set("eos_token", m.Config.EndToken); err != nil {
			return err
		}
	}
	return writeJSON(path, config)
}

func writeJSON(path string, o decoder.Object) error {
	text, err := o.Text()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writeFile(path, text)
}

// writeFile replaces the file at path as a whole.
func writeFile(path string, content []byte) error {
	temp := path + ".partial"
	if err := os.WriteFile(temp, content, 0o644); err != nil {
		os.Remove(temp)
		return err
	}
	return os.Rename(temp, path)
}
