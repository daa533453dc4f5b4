package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// put writes files, given by path below dir, with their path as content.
func put(t *testing.T, dir string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tree lists "path=content" of every file below dir.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all = append(all, name+"="+string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// A folder that cannot be filled leaves the one before, and nothing else.
func TestReplaceFolderIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	put(t, dir, "model/weights", "model/only-in-old")
	full := errors.New("no space left on device")
	err := replaceFolder(path, func(part string) error {
		put(t, part, "weights")
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	if got := tree(t, dir); !slices.Equal(got, []string{"model/only-in-old=model/only-in-old", "model/weights=model/weights"}) {
		t.Errorf("after a failure: %q", got)
	}
	if err := replaceFolder(path, func(part string) error { put(t, part, "weights"); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, dir); !slices.Equal(got, []string{"model/weights=weights"}) {
		t.Errorf("after a replacement: %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

// Whatever moment a run was killed at, the newest complete folder has the name.
func TestRemoveLeftovers(t *testing.T) {
	for name, k := range map[string]struct{ left, want []string }{
		"nothing":         {nil, nil},
		"while filling":   {[]string{"model/w", ".model.tmp-1/w"}, []string{"model/w=model/w"}},
		"set aside":       {[]string{".model.old/w", ".model.tmp-1/w"}, []string{"model/w=.model.old/w"}},
		"replaced":        {[]string{".model.old/w", "model/w"}, []string{"model/w=model/w"}},
		"while writing":   {[]string{".metrics.jsonl.tmp-123", ".config.toml.tmp-9"}, nil},
		"in a checkpoint": {[]string{"checkpoints/step-4/w", "checkpoints/.step-6.tmp-1/w"}, []string{"checkpoints/step-4/w=checkpoints/step-4/w"}},
		"while removing":  {[]string{"checkpoints/step-4/w", "checkpoints/.step-2.tmp-removed/w"}, []string{"checkpoints/step-4/w=checkpoints/step-4/w"}},
		"someone else's":  {[]string{".hidden", "notes.old", "a.tmp-1"}, []string{".hidden=.hidden", "a.tmp-1=a.tmp-1", "notes.old=notes.old"}},
	} {
		dir := t.TempDir()
		put(t, dir, k.left...)
		if err := removeLeftovers(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := tree(t, dir); !slices.Equal(got, k.want) {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
	if err := removeLeftovers(filepath.Join(t.TempDir(), "gone")); err != nil {
		t.Errorf("no folder: %v", err)
	}
}

// A checkpoint that fails midway leaves the one before as the newest; complete
// ones are kept up to a number.
func TestWriteCheckpoint(t *testing.T) {
	out := t.TempDir()
	weights := func(dir string) error { put(t, dir, "w"); return nil }
	for _, step := range []int{2, 10, 4} {
		if err := writeCheckpoint(out, &State{Step: step, Config: "c"}, 2, weights); err != nil {
			t.Fatal(err)
		}
	}
	full := errors.New("no space left on device")
	err := writeCheckpoint(out, &State{Step: 12}, 2, func(dir string) error { put(t, dir, "w"); return full })
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "step-12") {
		t.Errorf("error %v", err)
	}
	var s State
	dir, err := lastCheckpoint(out, &s)
	if err != nil || filepath.Base(dir) != "step-10" || s.Step != 10 || s.Config != "c" {
		t.Errorf("newest %s %+v, error %v", dir, s, err)
	}
	steps, err := checkpointSteps(out)
	if err != nil || !slices.Equal(steps, []int{4, 10}) || len(tree(t, out)) != 4 {
		t.Errorf("kept %v: %q, error %v", steps, tree(t, out), err)
	}

	// The same step again is the same state: nothing is written.
	if err := writeCheckpoint(out, &s, 2, func(string) error { return full }); err != nil {
		t.Errorf("again: %v", err)
	}

	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{\"step\":"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := lastCheckpoint(out, &s); err == nil || !strings.Contains(err.Error(), filepath.Join("step-10", stateFile)) {
		t.Errorf("broken state: error %v", err)
	}
}
