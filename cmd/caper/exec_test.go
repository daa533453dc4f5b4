package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"caper/sqlexec"
)

// Columns are aligned by what a terminal shows, and no cell can command it.
func TestTableOnATerminal(t *testing.T) {
	var out strings.Builder
	result := tableOf(&sqlexec.Result{
		Columns: []string{"n", "name\x1b[2J", "x"},
		Rows: [][]sqlexec.Value{
			{int64(7), "つ", nil},
			{int64(-10), "a\xff\n", []byte{0, 255}},
			{nil, `"q"\`, 1.5},
		},
	}, 0)
	if err := result.print(&out); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"   n  name\\x1b[2J  x\n" +
		"   7  つ           NULL\n" +
		" -10  a\\xff\\n      x'00ff'\n" +
		"NULL  \"q\"\\         1.5\n"
	if out.String() != want {
		t.Errorf("have\n%s\nwant\n%s", out.String(), want)
	}
}

// A failure is a document too, and still exit status 1.
func TestExecFailureAsJSON(t *testing.T) {
	databases, err := filepath.Glob(filepath.Join(openWorkshop(t).bench, "database", "*", "*.sqlite"))
	if err != nil || len(databases) == 0 {
		t.Fatalf("databases %v: %v", databases, err)
	}
	for query, want := range map[string]string{
		"SELECT instr(zeroblob(1000000), CAST(zeroblob(500000) || 'x' AS BLOB))": "timeout",
		"SELECT zeroblob(1e9)": "memory",
		"PRAGMA user_version":  "not_select",
		"SELECT nope":          "no_such_name",
		"SELEC":                "syntax",
	} {
		r := caper(t, "exec", "--db", databases[0], "--json", "--timeout", "200ms", "--memory", "4MiB", query)
		if r.status != exitFailed || oneDocument(t, r)["failure"] != want || !strings.HasPrefix(r.stderr, "caper: "+want) {
			t.Errorf("%s: %+v, want %s", query, r, want)
		}
	}
}

// Where no worker process can start, the file is not to blame.
func TestScarcity(t *testing.T) {
	err := &sqlexec.FileError{Path: "a.sqlite", Err: fmt.Errorf("start a worker process: %w", &fs.PathError{Op: "open", Path: "/dev/null", Err: syscall.EMFILE})}
	if got := remedied(err).Error(); !strings.HasSuffix(got, "too many open files; allow more open files with ulimit -n") {
		t.Error(got)
	}
	if got := scarcity(&fs.PathError{Op: "open", Path: "a.sqlite", Err: syscall.ENOENT}); got != "" {
		t.Error(got)
	}
}
