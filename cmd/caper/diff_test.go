package main

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"caper/annotate"
	query "caper/sql"
)

// The texts come out whole but for the marks, the script below them by clause.
func TestDiff(t *testing.T) {
	a := "SELECT T1.name FROM singer AS T1\nJOIN song AS T2 ON T1.id = T2.singer WHERE T1.age > 30"
	b := "select name, count(*) from singer where 30 <= age;"
	want := strings.Join([]string{
		"SELECT T1.name FROM singer AS T1",
		"[-JOIN song AS T2 ON T1.id = T2.singer-] WHERE T1.age [->-] 30",
		"select name, {+count(*)+} from singer where 30 {+<=+} age;",
		"",
		"cost 9", // aggregate and star; join, table, on, compare and two columns; compare
		"  SELECT  insert   aggregate `count(*)` in projection `SELECT T1.name`",
		"  FROM    delete   join `JOIN song AS T2 ON T1.id = T2.singer`",
		"  WHERE   relabel  compare `T1.age > 30` to compare `30 <= age`",
		"",
	}, "\n")
	if r := must(t, "diff", a, b); r.stdout != want || r.stderr != "" {
		t.Errorf("%s\nwant\n%s%s", r.stdout, want, r.stderr)
	}

	// Files give the same; so does JSON, whose spans are of the texts.
	fileA := writeFile(t, filepath.Join(t.TempDir(), "a.sql"), a)
	fileB := writeFile(t, filepath.Join(t.TempDir(), "b.sql"), b)
	if r := must(t, "diff", fileA, fileB); r.stdout != want {
		t.Errorf("from files: %s", r.stdout)
	}
	var d annotate.Diff
	if err := json.Unmarshal([]byte(must(t, "diff", fileA, b, "--json").stdout), &d); err != nil {
		t.Fatal(err)
	}
	if d.Cost != 9 || len(d.Clauses) != 3 || len(d.Edits) != 9 {
		t.Errorf("cost %d, %d clauses, %d edits", d.Cost, len(d.Clauses), len(d.Edits))
	}
	for _, e := range d.Edits {
		if e.Clause == "WHERE" && (a[e.A.Start:e.A.End] != "T1.age > 30" || b[e.B.Start:e.B.End] != "30 <= age") {
			t.Errorf("%+v", e)
		}
	}

	if r := must(t, "diff", "SELECT a FROM t AS x", "select x.a from t x"); !strings.HasSuffix(r.stdout, "\n\nno difference in meaning\n") {
		t.Errorf("%q", r.stdout)
	}
	if r := must(t, "diff", "VALUES(1)", "SELECT/**/1"); !strings.Contains(r.stdout, "cost ") {
		t.Errorf("queries without a blank: %q", r.stdout)
	}
}

// A schema tells which table a bare column belongs to.
func TestDiffSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "music.sqlite")
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE singer (id, name); CREATE TABLE song (title, singer)"); err != nil {
		t.Fatal(err)
	}
	a, b := "SELECT name FROM singer JOIN song ON id = singer", "SELECT singer.name FROM singer JOIN song ON singer.id = song.singer"
	if r := must(t, "diff", a, b); strings.Contains(r.stdout, "no difference") {
		t.Errorf("without a schema: %s", r.stdout)
	}
	if r := must(t, "diff", a, b, "--schema", path); !strings.Contains(r.stdout, "no difference") {
		t.Errorf("with the schema: %s", r.stdout)
	}
}

// What cannot be read is named with its place.
func TestDiffFaults(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "a.sql"), "SELECT 1\nFROM t WHERE")
	long := writeFile(t, filepath.Join(t.TempDir(), "long.sql"), "SELECT 1 -- "+strings.Repeat("x", query.MaxTextBytes))
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{file, "SELECT 1"}, file + ":2:"},
		{[]string{"SELECT 1", "SELECT FROM t"}, "SELECT FROM t"},
		{[]string{"none.sql", "SELECT 1"}, "none.sql: no such file"},
		{[]string{"SELECT 1", "SELECT 2", "--schema", "none.sqlite"}, "none.sqlite"},
		{[]string{"SELECT 1; SELECT 2", "SELECT 2"}, "statement"},
		{[]string{"", "SELECT 1"}, "a query is empty"},
		{[]string{"/dev/zero", "SELECT 1"}, "/dev/zero is not a regular file"},
		{[]string{t.TempDir(), "SELECT 1"}, "is not a regular file"},
		{[]string{"SELECT 1", long}, "long.sql is longer than 131072 bytes"},
		{[]string{"SELECT FROM " + strings.Repeat("x, ", 40_000), "SELECT 1"}, "SELECT FROM x, x"},
		{[]string{"SELECT a b " + strings.Repeat("x", 100_000), "SELECT 1"}, "syntax error"},
	} {
		r := caper(t, append([]string{"diff"}, c.arguments...)...)
		if r.status != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 || len(r.stderr) > 1100 {
			t.Errorf("%.100q: %+v", c.arguments, r)
		}
	}
	if r := caper(t, "diff", "SELECT 1"); r.status != exitUsage {
		t.Errorf("one query: %+v", r)
	}
}
