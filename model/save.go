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

// Format says how weights are written.
type Format struct {
	// DType is F32, BF16 or F16. Of BF16 and F16 the weights are excepted that official
	// checkpoints keep in F32, unless they were read in less. The zero value stands for
	// the type that each weight was read in.
	DType safetensors.DType
	// MaxShardBytes is the size above which the weights are cut into shards; 0 for never.
	MaxShardBytes int
	// Progress, if there is one, is told at the start and after each block how many bytes
	// of weights are written, and of how many.
	Progress func(done, total int)
}

// write stores entries in dir.
func (f Format) write(dir string, entries []safetensors.Entry) error {
	if f.Progress != nil {
		done, total := 0, 0
		for i := range entries {
			total += entries[i].Bytes()
			entries[i].Written = func(bytes int) { done += bytes; f.Progress(done, total) }
		}
		f.Progress(0, total)
	}
	return safetensors.WriteFolder(dir, entries, metadata, f.MaxShardBytes)
}

// Save writes the model to dir in Hugging Face layout with weights in F32: the files
// that Load, transformers and other engines read. Each file is written under a
// temporary name and renamed; config.json comes last, so a folder that has it is whole.
func (m *Model) Save(dir string) error { return m.SaveAs(dir, Format{DType: safetensors.F32}) }

// SaveAs is Save in another format. Of a model with an adapter that is not merged, it
// writes the adapter in PEFT's layout, in F32, and a config.json and tokenizer beside.
func (m *Model) SaveAs(dir string, f Format) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// That of an earlier save would vouch for half a folder.
	if err := os.Remove(filepath.Join(dir, ConfigName)); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := m.saveWeights(dir, f); err != nil {
		return err
	}
	if m.Tokenizer != nil {
		if err := m.saveTokenizer(dir); err != nil {
			return err
		}
	}
	return m.Config.Save(dir, m.parameters[0].DType(f.DType))
}

// Save writes dir's config.json for weights of the given type.
func (c *Config) Save(dir string, dtype safetensors.DType) error {
	config, err := c.object(dtypeNames[dtype])
	if err != nil {
		return fmt.Errorf("%s: %w", ConfigName, err)
	}
	return writeJSON(filepath.Join(dir, ConfigName), config)
}

// dtypeNames are the element types as config.json names them.
var dtypeNames = map[safetensors.DType]string{safetensors.F32: "float32", safetensors.BF16: "bfloat16", safetensors.F16: "float16"}

func (m *Model) saveWeights(dir string, f Format) error {
	if m.Adapter != nil && !m.Adapter.Merged() {
		return m.saveAdapter(dir)
	}
	var entries []safetensors.Entry
	for _, p := range m.parameters {
		entries = append(entries, p.Entry(f.DType))
	}
	return f.write(dir, entries)
}

// metadata is what transformers refuses files without.
var metadata = map[string]string{"format": "pt"}

// saveTokenizer writes tokenizer.json and the tokenizer_config.json without which
// transformers would guess a tokenizer class from the model type.
func (m *Model) saveTokenizer(dir string) error {
	if err := m.Tokenizer.Save(filepath.Join(dir, tokenizerName)); err != nil {
		return err
	}
	for name, text := range m.texts {
		if err := safetensors.WriteText(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	if m.texts[tokenizerConfigName] != nil {
		return nil
	}
	config := decoder.Object{"tokenizer_class": []byte(`"PreTrainedTokenizerFast"`), "clean_up_tokenization_spaces": []byte("false")}
	if m.Config.EndToken != "" {
		if err := config.Set("eos_token", m.Config.EndToken); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(dir, tokenizerConfigName), config)
}

func writeJSON(path string, o decoder.Object) error {
	text, err := o.Text()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return safetensors.WriteText(path, text)
}
