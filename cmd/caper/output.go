package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"caper/engine"
	"caper/model"
	"caper/train/run"
)

// notRunFolder tells someone who names a training run where its model is.
func notRunFolder(dir string) error {
	inner := filepath.Join(dir, "model")
	for _, path := range []string{filepath.Join(dir, run.ConfigName), filepath.Join(inner, model.ConfigName)} {
		if _, err := os.Stat(path); err != nil {
			return nil
		}
	}
	return fmt.Errorf("%s is a run folder: its model is %s; name that", dir, inner)
}

// counted is a number of things in words.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// saved says what packed trees saved, where they did.
func saved(s engine.Sharing) string {
	if s.Tokens <= s.Rows {
		return ""
	}
	return fmt.Sprintf(": %d tokens in place of %d, %.1f times fewer", s.Rows, s.Tokens, s.Ratio())
}

// printJSON writes the one JSON document of a command's --json to stdout.
func printJSON(v any) error { return encodeJSON(os.Stdout, v) }

// encodeJSON writes the same document elsewhere.
func encodeJSON(to io.Writer, v any) error {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
