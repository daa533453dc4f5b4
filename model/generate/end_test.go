package generate

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestEndTokens(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  []int32
		fails bool
	}{
		{map[string]string{"config.json": `{"eos_token_id":7}`}, []int32{7}, false},
		{map[string]string{"config.json": `{"eos_token_id":7}`, "generation_config.json": `{"eos_token_id":[8,9]}`}, []int32{8, 9}, false},
		{map[string]string{"config.json": `{"eos_token_id":null,"text_config":{"eos_token_id":5}}`, "generation_config.json": `{}`}, []int32{5}, false},
		{map[string]string{"config.json": `{}`}, nil, false},
		{map[string]string{"config.json": `{"eos_token_id":"x"}`}, nil, true},
		{map[string]string{"config.json": `{"eos_token_id":7}`, "generation_config.json": `[`}, nil, true},
		{nil, nil, true},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := EndTokens(dir)
		if !slices.Equal(got, c.want) && !c.fails || (err != nil) != c.fails {
			t.Errorf("%v: %v, %v", c.files, got, err)
		}
	}
}
