package data

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteFolder makes the folder dir, which must not exist yet or be empty, whole or
// not at all: write fills a temporary folder beside it, which then takes its name.
func WriteFolder(dir string, write func(work string) error) error {
	dir = filepath.Clean(dir)
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it or choose another folder", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-")
	if err != nil {
		return err
	}
	defer Temporary(work)()
	defer os.RemoveAll(work)
	if err := write(work); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	os.Remove(dir) // an empty folder may stand in the way of the rename
	return os.Rename(work, dir)
}
