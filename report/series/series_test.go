package series

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := Parse([]byte(`{"step":3,"loss":-0.5,"alarm":["x"],"skipped":true,"group_correct":[2,0,1],"groups":{"2":5,"0":1},"far":{"1":1,"1000000":1},"reward":{"WHERE":0.25,"deep":{"x":1}},"note":"n","none":null,"empty":[]}`))
	want := Line{
		Step:   3,
		Values: []Value{{"far/1", 1}, {"far/1000000", 1}, {"loss", -0.5}, {"reward/WHERE", 0.25}, {"reward/deep/x", 1}, {"skipped", 1}},
		Counts: []Counts{{"group_correct", []float64{2, 0, 1}}, {"groups", []float64{1, 0, 5}}},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`{"loss":1}`, `{"step":1.5}`, `{"step":"1"}`, `[1]`, `{`} {
		if line, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s read as %v", bad, line)
		}
	}
}

func TestReaderFollows(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	r := NewReader(dir)
	if _, _, err := r.Next(); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("no file: %v", err)
	}
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	check := func(anew bool, steps ...int) {
		t.Helper()
		lines, again, err := r.Next()
		var got []int
		for _, l := range lines {
			got = append(got, l.Step)
		}
		if err != nil || again != anew || !cmp.Equal(got, steps) {
			t.Fatalf("steps %v, anew %v, %v; want %v, %v", got, again, err, steps, anew)
		}
	}
	add("{\"step\":1}\n{\"step\":2}\n{\"st")
	check(false, 1, 2)
	check(false)
	add("ep\":3}\n")
	check(false, 3)
	// A resumed run writes the lines up to its checkpoint to a new file.
	if err := os.WriteFile(path+".new", []byte("{\"step\":1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	check(true, 1)
	add("{\"step\":2}\n{}\n")
	lines, _, err := r.Next()
	if len(lines) != 1 || err == nil || !strings.Contains(err.Error(), FileName+":3: ") {
		t.Errorf("a line without a step: %v, %v", lines, err)
	}
}

func TestFields(t *testing.T) {
	l, err := Parse([]byte(`{"step":1,"a-b":1,"a":{"z":2,"b":{"c":3}},"ab":4}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"a-b": 1, "a/z": 2, "a/b/c": 3, "ab": 4} {
		if got, ok := l.Value(name); !ok || got != want {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
	if _, ok := l.Value("a"); ok {
		t.Error("an object is no number")
	}
	if got := l.Parts("a"); !cmp.Equal(got, map[string]float64{"z": 2, "b/c": 3}) {
		t.Errorf("parts %v", got)
	}
}
