package model

import (
	"encoding/json"
	"fmt"
	"slices"

	"caper/model/decoder"
)

// generationName is the file of a model folder that says how to generate.
const generationName = "generation_config.json"

// EndsWith makes an added token the end of the model's output, in the folders that Save
// writes: their generation_config.json lists it, beside those that it lists already.
func (m *Model) EndsWith(token string) error {
	id, ok := m.Tokenizer.ID(token)
	if !ok {
		return fmt.Errorf("the tokenizer has no token %q", token)
	}
	settings := decoder.Object{}
	if text := m.texts[generationName]; text != nil {
		if err := json.Unmarshal(text, &settings); err != nil {
			return fmt.Errorf("%s: %w", generationName, err)
		}
	}
	const key = "eos_token_id"
	var ids []int32
	var one int32
	if settings.Decode(key, &ids) != nil && settings.Decode(key, &one) == nil {
		ids = []int32{one}
	}
	if slices.Contains(ids, id) {
		return nil
	}
	if err := settings.Set(key, append(ids, id)); err != nil {
		return err
	}
	text, err := settings.Text()
	if m.texts == nil {
		m.texts = map[string][]byte{}
	}
	m.texts[generationName] = text
	return err
}
