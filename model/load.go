package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"caper/engine"
	"caper/model/decoder"
	"caper/model/lora"
	"caper/model/safetensors"
	"caper/model/tokenizer"
)

// Option changes how Load loads.
type Option func(*loading)

type loading struct{ frozen bool }

// Frozen loads weights that are only read: no memory for gradients.
func Frozen(l *loading) { l.frozen = true }

// Load reads a model folder in Hugging Face layout: config.json, the weights in
// safetensors, and tokenizer.json where there is one. Weights become the device's
// element type whatever the file's is, and of the file no more than a block is in
// memory at a time. In the folder of an adapter, the weights are those of its base
// model, frozen, and the adapter's.
func Load(dir string, dev engine.Device, options ...Option) (*Model, error) {
	var l loading
	for _, option := range options {
		option(&l)
	}
	if lora.IsFolder(dir) {
		return loadAdapted(dir, dev, l.frozen)
	}
	config, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	folder, err := safetensors.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	p, err := decoder.Read(dev, folder, l.frozen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	m := build(config, dev, p, p)
	if err := errors.Join(p.Finish(), engine.Wait(dev)); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return m, m.loadTokenizer(dir)
}

// loadTokenizer reads the tokenizer of the first of dirs that has one.
func (m *Model) loadTokenizer(dirs ...string) error {
	for _, dir := range dirs {
		path := filepath.Join(dir, tokenizerName)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s: not a regular file: put the tokenizer there", path)
		}
		if err != nil {
			return err
		}
		k, err := tokenizer.Load(path)
		if err != nil {
			return err
		}
		if err := m.SetTokenizer(k); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return m.readCompanions(dir)
	}
	return nil
}

// companions are the files of a folder that whoever runs the model reads beside its
// tokenizer: special tokens, how a chat is written, where an answer ends.
var companions = []string{tokenizerConfigName, "chat_template.jinja", "generation_config.json"}

func (m *Model) readCompanions(dir string) error {
	m.texts = map[string][]byte{}
	for _, name := range companions {
		text, err := safetensors.ReadText(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		m.texts[name] = text
	}
	return nil
}
