package sqlexec

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const smallPage = 512

// manyPages has tables of several pages and rows that run over several more.
var manyPages = append([]string{fmt.Sprintf("PRAGMA page_size = %d", smallPage)}, append(shop,
	"CREATE TABLE n AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 2000) SELECT i, 'row ' || i AS name FROM r",
	"CREATE INDEX by_name ON n(name)",
	"CREATE TABLE long AS SELECT i, printf('%.*c', 5000, 'x') AS text FROM n WHERE i < 5",
)...)

// page is page number of a file of small pages; the first has number 1.
func page(file []byte, number int) []byte { return file[(number-1)*smallPage : number*smallPage] }

// interior writes a page of a table's tree that has 50 children, all the same page.
func interior(into []byte, child int) {
	const children, headerBytes, cellBytes = 50, 12, 5
	clear(into)
	into[0] = 5
	binary.BigEndian.PutUint16(into[3:], children)
	binary.BigEndian.PutUint16(into[5:], uint16(len(into)-children*cellBytes))
	binary.BigEndian.PutUint32(into[8:], uint32(child))
	for i := range children {
		at := len(into) - (i+1)*cellBytes
		binary.BigEndian.PutUint16(into[headerBytes+2*i:], uint16(at))
		binary.BigEndian.PutUint32(into[at:], uint32(child))
		into[at+4] = byte(i)
	}
}

// sharedChildren makes a tree of 18 levels whose pages have 50 children each, all
// one page: small in the file, and more rows than can ever be counted.
func sharedChildren(file []byte, root int) []byte {
	pages := len(file) / smallPage
	for level := range 18 {
		file = append(file, make([]byte, smallPage)...)
		child := pages + level + 2
		if level == 17 {
			child = leafPage(file)
		}
		interior(page(file, pages+level+1), child)
	}
	interior(page(file, root), pages+1)
	binary.BigEndian.PutUint32(file[28:], uint32(len(file)/smallPage))
	return file
}

// leafPage finds a leaf of a table.
func leafPage(file []byte) int {
	for number := 2; ; number++ {
		if page(file, number)[0] == 13 {
			return number
		}
	}
}

// cyclicOverflow makes all pages of a long row's text follow themselves.
func cyclicOverflow(file []byte) []byte {
	for number := 2; number <= len(file)/smallPage; number++ {
		p := page(file, number)
		if slices.Equal(p[100:110], []byte("xxxxxxxxxx")) && binary.BigEndian.Uint32(p) > 0 {
			binary.BigEndian.PutUint32(p, uint32(number))
		}
	}
	return file
}

// reader are queries that between them read every page of manyPages.
var reader = []string{
	"SELECT * FROM item", "SELECT count(*) FROM n", "SELECT count(*), sum(i), max(name) FROM n WHERE i > 0",
	"SELECT count(*) FROM n WHERE name >= ''", "SELECT sum(length(text)), max(text) FROM long", "SELECT count(*) FROM long", "SELECT * FROM n ORDER BY name DESC",
	"SELECT name FROM sqlite_schema",
}

// readAll opens a file and runs every reader. It returns the classes of all that
// went wrong; none may be without class.
func readAll(t *testing.T, path string) (failures []string) {
	t.Helper()
	class := func(err error) string {
		var q *Error
		var f *FileError
		switch {
		case errors.As(err, &q):
			return string(q.Failure)
		case errors.As(err, &f) && f.Path == path:
			return "file"
		}
		t.Errorf("%s: an error without class: %v", path, err)
		return "unknown"
	}
	d, err := Open(path, Limits{Timeout: time.Second, Rows: 10_000, Bytes: 8 << 20})
	if err != nil {
		return []string{class(err)}
	}
	defer d.Close()
	for _, query := range reader {
		if _, err := d.Query(context.Background(), query); err != nil {
			failures = append(failures, class(err))
		}
	}
	return failures
}

// TestBrokenFiles: whatever is wrong with a file is an error that says so, and no
// file changes or appears.
func TestBrokenFiles(t *testing.T) {
	whole := readFile(t, writeDatabase(t, manyPages...))
	root := func(table string) int { return rootPage(t, whole, table) }
	header := func(at int, bytes ...byte) func([]byte) []byte {
		return func(file []byte) []byte { copy(file[at:], bytes); return file }
	}
	kinds := map[string]struct {
		change func(file []byte) []byte
		want   string // among the failures; "" where it may be read without
	}{
		"whole":                          {func(f []byte) []byte { return f }, ""},
		"empty":                          {func(f []byte) []byte { return nil }, "file"},
		"text":                           {func(f []byte) []byte { return []byte("id,name\n1,a\n") }, "file"},
		"magic only":                     {func(f []byte) []byte { return f[:16] }, "file"},
		"header only":                    {func(f []byte) []byte { return f[:100] }, "file"},
		"half of the first page":         {func(f []byte) []byte { return f[:smallPage/2] }, "file"},
		"first page":                     {func(f []byte) []byte { return f[:smallPage] }, "file"},
		"half":                           {func(f []byte) []byte { return f[:len(f)/2] }, "file"},
		"half a page less":               {func(f []byte) []byte { return f[:len(f)-smallPage/2] }, "file"},
		"page size 0":                    {header(16, 0, 0), "file"},
		"page size 1,000":                {header(16, 3, 232), "file"},
		"page size 65,536":               {header(16, 0, 1), "file"},
		"page size twice as large":       {header(16, 4, 0), "file"},
		"a later format":                 {header(18, 9, 9), "file"},
		"a later schema format":          {header(44, 0, 0, 0, 99), "error"},
		"reserved bytes":                 {header(20, 255), "file"},
		"unknown text encoding":          {header(56, 0, 0, 0, 9), ""},
		"another text encoding":          {header(56, 0, 0, 0, 2), ""},
		"a schema that does not parse":   {func(f []byte) []byte { return bytes.Replace(f, []byte("TABLE item("), []byte("TABEL item("), -1) }, "file"},
		"four billion pages":             {header(28, 255, 255, 255, 255), ""},
		"all zero behind the header":     {func(f []byte) []byte { clear(f[100:]); return f }, "file"},
		"all ones behind the first page": {func(f []byte) []byte { return fill(f, smallPage, 0xff) }, "file"},
		"a page of the schema is a leaf of an index": {header(100, 10), "file"},
		"a table that is its own child":              {func(f []byte) []byte { interior(page(f, root("n")), root("n")); return f }, "file"},
		"a table below another's":                    {func(f []byte) []byte { interior(page(f, root("n")), root("by_name")); return f }, "file"},
		"a child beyond the end":                     {func(f []byte) []byte { interior(page(f, root("n")), 1<<30); return f }, "file"},
		"a text that follows itself":                 {cyclicOverflow, ""},
		"more rows than can be counted":              {func(f []byte) []byte { return sharedChildren(f, root("long")) }, "timeout"},
	}
	dir := t.TempDir()
	for name, kind := range kinds {
		path := filepath.Join(dir, name+".sqlite")
		if err := os.WriteFile(path, kind.change(slices.Clone(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	unchanged := watchFolder(t, dir)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			failures := readAll(t, filepath.Join(dir, name+".sqlite"))
			if kind.want != "" && !slices.Contains(failures, kind.want) {
				t.Errorf("have %q, want %q among them", failures, kind.want)
			}
			if name == "whole" && len(failures) > 0 {
				t.Errorf("have %q, want none", failures)
			}
		})
	}
	unchanged()
}

func fill(file []byte, from int, with byte) []byte {
	for i := range file[from:] {
		file[from+i] = with
	}
	return file
}

// rootPage finds where a table or index of a file begins.
func rootPage(t *testing.T, file []byte, name string) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.sqlite")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := d.Query(context.Background(), "SELECT rootpage FROM sqlite_schema WHERE name = '"+name+"'")
	if err != nil {
		t.Fatal(err)
	}
	return int(r.Rows[0][0].(int64))
}

// TestRandomDamage changes a few bytes anywhere, 150 times.
func TestRandomDamage(t *testing.T) {
	whole := readFile(t, writeDatabase(t, manyPages...))
	path := filepath.Join(t.TempDir(), "damaged.sqlite")
	random := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		damaged := slices.Clone(whole)
		for range 1 + random.IntN(20) {
			// Half of them in the headers of pages, where most harm is done.
			at := random.IntN(len(damaged))
			if random.IntN(2) == 0 {
				at -= at%smallPage - random.IntN(24)
			}
			damaged[at] = byte(random.Uint32())
		}
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		readAll(t, path)
	}
}

// TestHostileSchemas: what a file declares can do no more than a query.
func TestHostileSchemas(t *testing.T) {
	for name, c := range map[string]struct {
		schema, query string
		want          Failure
	}{
		"view that loads code":          {"CREATE VIEW v AS SELECT load_extension('x.so')", "SELECT * FROM v", NotSelect},
		"view upon a pragma":            {"CREATE VIEW v AS SELECT * FROM pragma_database_list", "SELECT * FROM v", NotSelect},
		"view that never ends":          {"CREATE VIEW v AS " + endless + "SELECT count(*) FROM r", "SELECT * FROM v", Timeout},
		"view upon itself":              {"CREATE VIEW v AS SELECT * FROM v", "SELECT * FROM v", Runtime},
		"view upon nothing":             {"CREATE VIEW v AS SELECT * FROM gone", "SELECT * FROM v", NoSuchName},
		"view without columns' names":   {"CREATE VIEW v(a, b) AS SELECT 1", "SELECT * FROM v", Runtime},
		"trigger":                       {"CREATE TRIGGER tr AFTER INSERT ON item BEGIN DELETE FROM item; END", "INSERT INTO item(id) VALUES (9)", NotSelect},
		"trigger in place of an insert": {"CREATE TRIGGER tr INSTEAD OF INSERT ON cheap BEGIN DELETE FROM item; END", "INSERT INTO cheap(id) VALUES (9)", NotSelect},
		"generated column too large":    {"CREATE TABLE g(a, b AS (zeroblob(1000000000))); INSERT INTO g VALUES (1)", "SELECT length(b) FROM g", Memory},
		"generated column, long text":   {"CREATE TABLE g(a, b AS (replace(hex(zeroblob(400000)), '0', 'xxxx'))); INSERT INTO g VALUES (1)", "SELECT b FROM g", Memory},
		"default":                       {"CREATE TABLE g(a, b DEFAULT (randomblob(1000000000)))", "SELECT * FROM g", ended},
		"full text index":               {"CREATE VIRTUAL TABLE f USING fts4(x); INSERT INTO f VALUES ('some words')", "SELECT x FROM f WHERE f MATCH 'words'", ended},
		"full text index, hostile":      {"CREATE VIRTUAL TABLE f USING fts4(x); INSERT INTO f VALUES ('some words'); UPDATE f_segdir SET root = x'00ffffffffffffffffffff'", "SELECT x FROM f WHERE f MATCH 'words'", "file"},
		// SQLite prepares to write an R-tree whenever it opens one.
		"R-tree": {"CREATE VIRTUAL TABLE f USING rtree(a, b, c); INSERT INTO f VALUES (1, 2, 3)", "SELECT a FROM f WHERE b < 9", NotSelect},
		"unknown module": {"PRAGMA writable_schema = 1; INSERT INTO sqlite_schema VALUES ('table', 'f', 'f', 0, 'CREATE VIRTUAL TABLE f USING evil(x)')",
			"SELECT * FROM f", NoSuchName},
		"schema of 1,000 tables": {manyTables(1_000), "SELECT count(*) FROM t999", ended},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeDatabase(t, append(slices.Clone(shop), c.schema)...)
			unchanged := watchFolder(t, filepath.Dir(path))
			defer unchanged()
			limits := hostileLimits(c.want)
			d, err := Open(path, limits)
			if err == nil {
				defer d.Close()
				_, err = d.Query(context.Background(), c.query)
			}
			failure := failureOf(err)
			if errors.As(err, new(*FileError)) {
				failure = "file"
			}
			if failure != c.want {
				t.Errorf("have %v, want failure %q", err, c.want)
			}
		})
	}
}

func manyTables(n int) (statements string) {
	for i := range n {
		statements += fmt.Sprintf("CREATE TABLE t%d(a PRIMARY KEY, b, c);", i)
	}
	return statements
}

// TestOddFiles: what is at a path need not be a file that can be read.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	whole := readFile(t, writeDatabase(t, shop...))
	must(os.Mkdir(at("folder"), 0o755))
	must(syscall.Mkfifo(at("pipe"), 0o644))
	must(os.Symlink("loop", at("loop")))
	must(os.Symlink("nowhere", at("dangling")))
	must(os.Symlink("/dev/zero", at("device")))
	must(os.WriteFile(at("with a log"), whole, 0o644))
	must(os.WriteFile(at("with a log-wal"), []byte("pages"), 0o644))
	must(os.WriteFile(at("with a journal"), whole, 0o644))
	must(os.WriteFile(at("with a journal-journal"), []byte("pages"), 0o644))
	must(os.WriteFile(at("sparse"), nil, 0o644))
	must(os.Truncate(at("sparse"), 1<<40))
	must(os.WriteFile(at("whole"), whole, 0o644))
	must(os.Symlink("whole", at("link")))
	must(os.WriteFile(at("sparse behind the end"), whole, 0o644))
	must(os.Truncate(at("sparse behind the end"), 1<<40))
	must(os.WriteFile(at("unreadable"), whole, 0))

	for name, want := range map[string]string{
		"folder": "not a regular file", "pipe": "not a regular file", "device": "not a regular file",
		"loop": "too many levels of symbolic links", "dangling": "no such file", "missing": "no such file",
		"with a log": "holds changes", "with a journal": "holds changes", "sparse": "not a SQLite database",
		"unreadable": "permission denied", "a\x00b": "invalid argument",
		string(slices.Repeat([]byte("x"), 300)): "file name too long",
		"whole":                                 "", "link": "", "sparse behind the end": "",
	} {
		t.Run(fmt.Sprintf("%.30q", name), func(t *testing.T) {
			if name == "unreadable" && os.Geteuid() == 0 {
				t.Skip("root reads everything")
			}
			d, err := Open(at(name), DefaultLimits())
			if err == nil {
				defer d.Close()
				_, err = d.Query(context.Background(), "SELECT * FROM item")
			}
			if want == "" && err != nil || want != "" && (!errors.As(err, new(*FileError)) || !strings.Contains(err.Error(), want)) {
				t.Errorf("have %v, want %q", err, want)
			}
		})
	}
}
