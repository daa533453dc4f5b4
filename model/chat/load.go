package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// published maps the SHA-256 of a chat_template.jinja to what it does.
var published = map[string]*Template{
	"a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8": Qwen3,
	"a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715": Qwen35,
	"e84f32a23fdda27689f868aa4a1a5621f41133e51a48d7f3efcbea2839574259": Qwen35, // Qwen3.6; other tool calls
	"273d8e0e683b885071fb17e08d71e5f2a5ddfb5309756181681de4f5a1822d80": Qwen35Small,
}

// ByName returns the template of a name: qwen3, qwen3.5 or qwen3.5-small.
func ByName(name string) (*Template, error) {
	var names []string
	for _, t := range []*Template{Qwen3, Qwen35, Qwen35Small} {
		if t.name == name {
			return t, nil
		}
		names = append(names, t.name)
	}
	return nil, fmt.Errorf("no chat template %q: there are %s", name, strings.Join(names, ", "))
}

// Load returns the template of a model folder: that of chat_template.jinja, else
// the chat_template of tokenizer_config.json. It must be a published one, byte for
// byte: a template is a program, and one that was changed may do anything.
func Load(dir string) (*Template, error) {
	path := filepath.Join(dir, "chat_template.jinja")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(dir, "tokenizer_config.json")
		text, err = configTemplate(path)
	}
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	sum := sha256.Sum256(text)
	if t, ok := published[hex.EncodeToString(sum[:])]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("%s: not a chat template that is known here: name the one that it comes from (%s, %s or %s)",
		path, Qwen3.name, Qwen35.name, Qwen35Small.name)
}

// configTemplate reads the template out of a tokenizer_config.json.
func configTemplate(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config struct {
		ChatTemplate json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var template string
	if err := json.Unmarshal(config.ChatTemplate, &template); err != nil || template == "" {
		return nil, fmt.Errorf("%s: no chat_template: name one", path)
	}
	return []byte(template), nil
}
