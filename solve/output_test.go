package solve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"caper/data"
)

type lineOf string

func (l lineOf) Lines() ([]data.Rollout, error) {
	return []data.Rollout{{QuestionID: data.NameID(string(l)), SQL: string(l)}}, nil
}

// A run that stopped goes on behind what it kept, and not with other input.
func TestResume(t *testing.T) {
	var pools []Pool
	for i := range 40 {
		pools = append(pools, Pool{Question: data.Question{ID: data.IndexID(i), Question: fmt.Sprint("q", i)}})
	}
	out := Output{Path: filepath.Join(t.TempDir(), "out.jsonl"), Workers: 2, Settings: map[string]string{"a": "b"}}
	worked := 0
	work := func(_ context.Context, p Pool) (lineOf, error) { return lineOf(p.Question.Question), nil }
	count := func(lineOf) error { worked++; return nil }

	// The file as a run leaves it that was killed behind its first checkpoint.
	kept := 7
	settings := map[string]string{"a": "b", "candidates": contentOf(pools)}
	file, err := data.OpenResumable(out.Path, false, settings, "questions", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pools[:kept] {
		lines, _ := lineOf(p.Question.Question).Lines()
		if err := errors.Join(file.WriteLine(lines[0]), file.Advance()); err != nil {
			t.Fatal(err)
		}
	}
	file.Close()

	if err := Write(context.Background(), out, pools, work, count); !errors.Is(err, data.ErrUnfinished) {
		t.Errorf("a run over an unfinished one: %v", err)
	}
	out.Resume = true
	if err := Write(context.Background(), out, pools[1:], work, count); err == nil || !strings.Contains(err.Error(), "candidates") {
		t.Errorf("resumed with other pools: %v", err)
	}
	if err := Write(context.Background(), out, pools, work, count); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != len(pools) || worked != len(pools)-kept {
		t.Errorf("%d lines, %d worked on", len(lines), worked)
	}
	for i, line := range lines {
		if !strings.Contains(line, fmt.Sprintf(`"sql":"q%d"`, i)) {
			t.Fatalf("line %d: %s", i, line)
		}
	}
}
