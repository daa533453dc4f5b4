package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileAppearsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "out.jsonl", "old")
	content := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	create := func() *File {
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.WriteLine(map[string]string{"sql": "a < b"}); err != nil {
			t.Fatal(err)
		}
		return f
	}
	create().Discard()
	if content() != "old" {
		t.Errorf("a discarded file left %q", content())
	}
	f := create()
	if content() != "old" {
		t.Errorf("an unfinished file shows %q", content())
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Discard() // nothing is left to discard
	if content() != "{\"sql\":\"a < b\"}\n" {
		t.Errorf("committed %q", content())
	}
	if f.Commit() == nil {
		t.Error("committed twice")
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

func TestCreateErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "no", "folder")} {
		if _, err := Create(path); err == nil || !strings.Contains(err.Error(), "write "+path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
