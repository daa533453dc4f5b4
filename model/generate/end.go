package generate

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"caper/model"
	"caper/model/decoder"
)

// EndTokens returns the ids that end a model's output, eos_token_id of the folder's
// generation_config.json or else of its config.json; none where neither names one.
func EndTokens(dir string) ([]int32, error) {
	for _, name := range []string{"generation_config.json", model.ConfigName} {
		path := filepath.Join(dir, name)
		o, err := decoder.ReadObject(path)
		if errors.Is(err, fs.ErrNotExist) && name != model.ConfigName {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids, err := endTokens(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if ids != nil {
			return ids, nil
		}
	}
	return nil, nil
}

// endTokens reads one id or a list of them, also from inside a vision model's
// text_config.
func endTokens(o decoder.Object) ([]int32, error) {
	const key = "eos_token_id"
	if !o.Has(key) && o.Has("text_config") {
		var text decoder.Object
		if err := o.Decode("text_config", &text); err != nil {
			return nil, err
		}
		o = text
	}
	if !o.Has(key) {
		return nil, nil
	}
	var ids []int32
	if o.Decode(key, &ids) == nil {
		return ids, nil
	}
	ids = make([]int32, 1)
	return ids, o.Decode(key, &ids[0])
}
