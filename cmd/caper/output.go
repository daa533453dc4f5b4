package main

import (
	"encoding/json"
	"os"
)

// printJSON writes the one JSON document of a command's --json to stdout.
func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
