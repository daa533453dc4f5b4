package sqlexec

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	capersql "caper/sql"
)

// writeDatabase makes a SQLite file from statements, through the ordinary driver.
func writeDatabase(t testing.TB, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop #1?.sqlite")
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	// The driver would read ? and # of the path as parameters; SQL takes it as it is.
	for _, s := range append(slices.Clone(statements), "VACUUM INTO '"+path+"'") {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

var shop = []string{
	"CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, sold DATE, left_over BOOLEAN)",
	"CREATE TABLE sale(id INTEGER PRIMARY KEY, item_id INT REFERENCES item, Note)",
	"CREATE VIEW cheap AS SELECT * FROM item WHERE price < 2",
	`INSERT INTO item VALUES (1,'tea',1.5,'2020-01-02',7), (2,'Öl',9.0,'soon',NULL), (3,'',NULL,1991,'no')`,
	"INSERT INTO sale VALUES (1,1,x'00ff'), (2,1,CAST(x'61ff62' AS TEXT)), (3,2,NULL)",
}

func openShop(t testing.TB) *Database {
	t.Helper()
	d, err := Open(writeDatabase(t, shop...), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestValuesAreThoseOfTheFile(t *testing.T) {
	d := openShop(t)
	r, err := d.Query(context.Background(), "SELECT * FROM item ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	// Column types never change a value: a date stays the text or number it is.
	want := [][]Value{
		{int64(1), "tea", 1.5, "2020-01-02", int64(7)},
		{int64(2), "Öl", 9.0, "soon", nil},
		{int64(3), "", nil, int64(1991), "no"},
	}
	if diff := cmp.Diff(want, r.Rows); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"id", "name", "price", "sold", "left_over"}, r.Columns); diff != "" {
		t.Error(diff)
	}
	r, err = d.Query(context.Background(), "SELECT Note FROM sale ORDER BY id; -- the end\n;")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]Value{{[]byte{0, 0xff}}, {"a\xffb"}, {nil}}, r.Rows); diff != "" {
		t.Error(diff)
	}
}

func TestFailuresHaveTheirClass(t *testing.T) {
	d := openShop(t)
	for query, want := range map[string]Failure{
		"SELEC 1":                                 Syntax,
		"SELECT 1 FROM":                           Syntax,
		"SELECT 'open":                            Syntax,
		"SELECT 1\x00 FROM item":                  Syntax,
		"SELECT nope FROM item":                   NoSuchName,
		"SELECT id FROM item, sale":               NoSuchName,
		"SELECT 1 FROM nope":                      NoSuchName,
		"SELECT nope(1)":                          NoSuchName,
		"":                                        NotSelect,
		" -- nothing\n;":                          NotSelect,
		"SELECT 1; SELECT 2":                      NotSelect,
		"SELECT 1; drop table item":               NotSelect,
		"SELECT 1; and some chat":                 NotSelect,
		"EXPLAIN SELECT 1":                        NotSelect,
		"BEGIN":                                   NotSelect,
		"INSERT INTO item(id) VALUES (9)":         NotSelect,
		"WITH a AS (SELECT 1) DELETE FROM item":   NotSelect,
		"CREATE TEMP TABLE x(y)":                  NotSelect,
		"ATTACH 'other.db' AS other":              NotSelect,
		"PRAGMA journal_mode = WAL":               NotSelect,
		"VACUUM INTO 'copy.db'":                   NotSelect,
		"SELECT * FROM pragma_table_info('item')": NotSelect,
		"SELECT load_extension('x')":              NotSelect,
		"SELECT ?":                                Runtime,
		"SELECT abs(-9223372036854775808)":        Runtime,
		"SELECT json('{')":                        Runtime,
	} {
		_, err := d.Query(context.Background(), query)
		var e *Error
		if !errors.As(err, &e) || e.Failure != want || e.Message == "" {
			t.Errorf("%q: have %v, want failure %q", query, err, want)
		}
	}
}

func TestRowsAreCutAtTheLimit(t *testing.T) {
	d, err := Open(writeDatabase(t, shop...), Limits{Timeout: 5 * time.Second, Rows: 10_000, Bytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := d.Query(context.Background(), endless+"SELECT x FROM r")
	if err != nil || !r.Truncated || len(r.Rows) != 10_000 {
		t.Errorf("endless rows: %v, want the first 10000, truncated", err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGreedyNeighbour: a query that fits the heap succeeds while others exhaust it.
func TestGreedyNeighbour(t *testing.T) {
	d, err := Open(writeDatabase(t, shop...), Limits{Timeout: 5 * time.Second, Rows: 10, Bytes: 12 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	// Sorting 300 rows of 100 kB takes 30 MB: one has room, four at once do not.
	sorted := func(n int) string {
		return fmt.Sprintf("WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT %d) "+
			"SELECT count(*), max(x) FROM (SELECT printf('%%.*c', 100000, 'x') AS x, i FROM r ORDER BY i DESC LIMIT -1 OFFSET 1)", n)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 2 {
				if _, err := d.Query(context.Background(), sorted(300)); err != nil {
					t.Errorf("fits alone, failed beside others: %v", err)
				}
			}
		}()
	}
	wg.Wait()
	_, err = d.Query(context.Background(), sorted(3000))
	var e *Error
	if !errors.As(err, &e) || e.Failure != Memory {
		t.Errorf("300 MB: %v", err)
	}
}

func TestContextEndsAQuery(t *testing.T) {
	d := openShop(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := d.Query(ctx, "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("have %v, want the context's error", err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := string(readFile(t, writeDatabase(t, shop...)))
	write("busy.sqlite-wal", "pages")
	for path, want := range map[string]string{
		filepath.Join(dir, "missing.sqlite"):   "no such file",
		dir:                                    "not a regular file",
		write("empty.sqlite", ""):              "empty",
		write("text.sqlite", "id,name\n1,a\n"): "not a SQLite database",
		write("cut.sqlite", whole[:1500]):      "malformed",
		write("busy.sqlite", whole):            "busy.sqlite-wal holds changes",
	} {
		_, err := Open(path, DefaultLimits())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: have %v, want %q", path, err, want)
		}
	}
}

func TestWriteAheadModeIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.sqlite")
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"PRAGMA journal_mode = WAL", "CREATE TABLE t(x)", "INSERT INTO t VALUES (1)"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	d, err := Open(path, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if r, err := d.Query(context.Background(), "SELECT x FROM t"); err != nil || len(r.Rows) != 1 {
		t.Error(r, err)
	}
	if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
		t.Errorf("files beside the database: %v", files)
	}
}

func TestSchema(t *testing.T) {
	s, err := openShop(t).Schema()
	if err != nil {
		t.Fatal(err)
	}
	want := &capersql.Schema{
		Tables: []capersql.SchemaTable{
			{Name: "item", Columns: []capersql.SchemaColumn{
				{Name: "id", Type: "INTEGER", PrimaryKey: true}, {Name: "name", Type: "TEXT"},
				{Name: "price", Type: "REAL"}, {Name: "sold", Type: "DATE"}, {Name: "left_over", Type: "BOOLEAN"}}},
			{Name: "sale", Columns: []capersql.SchemaColumn{
				{Name: "id", Type: "INTEGER", PrimaryKey: true}, {Name: "item_id", Type: "INT"}, {Name: "Note"}}},
			{Name: "cheap", NoRowID: true, Columns: []capersql.SchemaColumn{
				{Name: "id", Type: "INTEGER"}, {Name: "name", Type: "TEXT"},
				{Name: "price", Type: "REAL"}, {Name: "sold", Type: "DATE"}, {Name: "left_over", Type: "BOOLEAN"}}},
		},
		ForeignKeys: []capersql.ForeignKey{{Table: "sale", Column: "item_id", RefTable: "item", RefColumn: "id"}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkQuery is one small query on one connection; the target is thousands a second.
func BenchmarkQuery(b *testing.B) {
	d := openShop(b)
	for b.Loop() {
		if _, err := d.Query(context.Background(), "SELECT name, count(*) FROM item JOIN sale ON item.id = item_id GROUP BY name"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRows is a large result: packing and unpacking dominate.
func BenchmarkRows(b *testing.B) {
	d := openShop(b)
	const rows = 100_000
	query := fmt.Sprintf("WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT %d) SELECT i, i / 2.0, 'text ' || i FROM r", rows)
	for b.Loop() {
		if _, err := d.Query(context.Background(), query); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
