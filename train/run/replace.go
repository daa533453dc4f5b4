package run

import (
	"os"
	"path/filepath"
	"strings"

	"caper/data"
)

// A run may be killed at any moment. So files and folders are made under a
// temporary name beside their own, and removeLeftovers cleans up after a kill. The
// folders' names start with a dot:
const (
	temporary = ".tmp-" // .NAME.tmp-RANDOM: not complete, or on its way out
	setAside  = ".old"  // .NAME.old: complete, about to be replaced
)

// replaceFile writes a file whole or not at all. What a kill leaves of it, PATH.tmp,
// is overwritten when the run goes on.
func replaceFile(path string, content []byte) error {
	f, err := data.Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Commit()
}

// replaceFolder fills a temporary folder and puts it in path's place. A folder
// that was there is set aside first and removed last, so that at every moment one
// of the two is complete.
func replaceFolder(path string, fill func(dir string) error) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), temporaryPattern(path))
	if err != nil {
		return err
	}
	defer data.Temporary(dir)()
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := fill(dir); err != nil {
		return err
	}
	old := hidden(path) + setAside
	if err := os.Rename(path, old); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Rename(dir, path); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// removeFolder takes a folder's name away before its content, lest half of it be
// taken for the whole.
func removeFolder(path string) error {
	doomed := hidden(path) + temporary + "removed"
	if err := os.Rename(path, doomed); err != nil {
		return err
	}
	return os.RemoveAll(doomed)
}

// removeLeftovers cleans up after a run that was killed.
func removeLeftovers(out string) error {
	if err := recoverFolder(out); err != nil {
		return err
	}
	return recoverFolder(filepath.Join(out, checkpointFolder))
}

// recoverFolder puts back what was set aside and not yet replaced, and deletes
// what has a temporary name.
func recoverFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		name, isHidden := strings.CutPrefix(e.Name(), ".")
		original, isOld := strings.CutSuffix(name, setAside)
		switch {
		case !isHidden:
		case isOld:
			err = putBack(path, filepath.Join(dir, original))
		case strings.Contains(name, temporary):
			err = os.RemoveAll(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putBack gives a folder that was set aside its name again, unless its
// replacement has it.
func putBack(old, path string) error {
	if _, err := os.Stat(path); err == nil {
		return os.RemoveAll(old)
	}
	return os.Rename(old, path)
}

func hidden(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
}

func temporaryPattern(path string) string { return "." + filepath.Base(path) + temporary + "*" }
