package data

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Lines behind the last checkpoint are cut off; those before it, and its state,
// come back.
func TestPartialGoesBackToItsCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	first, second := goodTuple(), goodTuple()
	second.Question = "Which other?"
	second.ID = second.ContentID()

	p, err := CreatePartial(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, tuple := range []Tuple{first, second} {
		if err := p.Write(tuple); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := p.Checkpoint(map[string]int{"at": 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := CreatePartial(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("two writers: %v", err)
	}
	p.buffer.Flush() // the lines behind the checkpoint reach the disk, and the program dies
	p.f.Close()
	if _, err := CreatePartial(path); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a new file over an unfinished one: %v", err)
	}

	var state map[string]int
	p, found, err := ResumePartial(path, &state)
	if err != nil || !found || state["at"] != 1 {
		t.Fatalf("found %v, state %v: %v", found, state, err)
	}
	for id, err := range p.IDs() {
		if err != nil || id != first.ID {
			t.Errorf("id %s: %v", id, err)
		}
	}
	if err := errors.Join(p.Write(second), p.Commit()); err != nil {
		t.Fatal(err)
	}
	have, err := collect(ReadTuples(path))
	if err != nil || len(have) != 2 || have[1].ID != second.ID {
		t.Errorf("%v: %+v", err, have)
	}
	if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// What is left by a program killed inside Commit, or spoiled by others, does no harm.
func TestPartialLeftovers(t *testing.T) {
	for _, c := range []struct {
		name, partial, journal string
		found                  bool
		want                   string
	}{
		{"nothing", "", "", false, ""},
		{"lines without a journal", "{}\n", "", false, ""},
		{"renamed, journal not yet removed", "", `{"bytes":3,"state":1}`, false, ""},
		{"whole", "{}\n{", `{"bytes":3,"state":1}`, true, ""},
		{"broken journal", "{}\n", `{"bytes":`, false, "t.jsonl.journal"},
		{"odd state", "{}\n", `{"bytes":3,"state":"x"}`, false, "t.jsonl.journal"},
	} {
		path := filepath.Join(t.TempDir(), "t.jsonl")
		for name, text := range map[string]string{path + ".partial": c.partial, path + ".journal": c.journal} {
			if text != "" {
				if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
		var state int
		p, found, err := ResumePartial(path, &state)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "remove it") {
				t.Errorf("%s: %v", c.name, err)
			}
		case err != nil || found != c.found:
			t.Errorf("%s: found %v: %v", c.name, found, err)
		default:
			if info, _ := p.f.Stat(); found != (info.Size() == 3) {
				t.Errorf("%s: %d bytes", c.name, info.Size())
			}
			p.Close()
		}
	}
}
