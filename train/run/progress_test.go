package run

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is logged while the bar is shown, and after it is full, is not lost.
func TestBarKeepsTheLog(t *testing.T) {
	for _, total := range []int{3, 50} { // full at the end, or given up
		var out bytes.Buffer
		b := &bar{out: &out}
		fmt.Fprintln(b, "before")
		loss := 0.5
		for step := 1; step <= 3; step++ {
			b.Step(step, total, []Figure{{"loss", loss}, {"tokens_per_second", 1234}})
			fmt.Fprintf(b, "line %d\n", step)
		}
		b.Step(3, total, nil)
		b.close()
		fmt.Fprintln(b, "after")
		for _, want := range []string{"before\n", "line 1\n", "line 2\n", "line 3\n", "after\n"} {
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("%d steps: %q in %q", total, want, out.String())
			}
		}
	}
}

// Without a terminal, progress is a line of log at the start, at the end, and every
// few seconds.
func TestLinesAreFew(t *testing.T) {
	var out bytes.Buffer
	l := &lines{log: slog.New(slog.NewTextHandler(&out, nil))}
	loss, accuracy := 0.25, 0.75
	for step := 1; step <= 100; step++ {
		l.Step(step, 100, []Figure{{"loss", loss}, {"accuracy", accuracy}})
		l.Step(step, 100, nil)
	}
	if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "done=100 total=100 loss=0.25 accuracy=0.75") {
		t.Error(text)
	}
}

func TestProgressOnAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, log, done := NewProgress(f)
	p.Step(1, 2, []Figure{{"loss", 0.25}})
	log.Info("hello")
	done()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if text := string(text); !strings.Contains(text, "msg=step") || !strings.Contains(text, "msg=hello") {
		t.Error(text)
	}
}
