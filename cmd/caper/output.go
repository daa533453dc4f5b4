package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"caper/model"
	"caper/train"
)

// notRunFolder tells someone who names a training run where its model is.
func notRunFolder(dir string) error {
	inner := filepath.Join(dir, "model")
	for _, path := range []string{filepath.Join(dir, train.ConfigName), filepath.Join(inner, model.ConfigName)} {
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

// printJSON writes the one JSON document of a command's --json to stdout.
func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
