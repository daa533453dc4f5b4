package fill

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"caper/data"
)

// result is a filled benchmark.
type result struct {
	Summary
	dir string
}

func fill(t *testing.T, dir string, o Options) result {
	t.Helper()
	bench, err := data.OpenBenchmark(dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	r := result{dir: filepath.Join(t.TempDir(), "filled")}
	if r.Summary, err = Write(t.Context(), bench, r.dir, o); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r result) open(t *testing.T) *data.Benchmark {
	bench, err := data.OpenBenchmark(r.dir, "auto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bench.Close() })
	return bench
}

func (r result) path(name string) string {
	return filepath.Join(r.dir, "database", strings.TrimSuffix(name, ".sqlite"), name)
}

func (r result) read(t *testing.T, name string) []byte {
	text, err := os.ReadFile(r.path(name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkKeys asks SQLite itself, table by table, on a connection of its own. A
// foreign key to columns that are no key, which SQLite cannot check, is checked by
// looking the values up.
func (r result) checkKeys(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, "database", "*", "*"))
	if err != nil || len(files) != r.Databases {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, path := range files {
		if got := value(t, path, `PRAGMA integrity_check`); got != "ok" {
			t.Errorf("%s: integrity_check: %v", path, got)
		}
		db := open(t, path)
		keys, err := db.Query(`SELECT m.name, f."table", f."from", f."to" FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f
			WHERE f."to" IS NOT NULL AND f."table" IN (SELECT name FROM sqlite_schema) AND f.id IN (SELECT id FROM pragma_foreign_key_list(m.name) GROUP BY id HAVING count(*) = 1)`)
		if err != nil {
			t.Fatal(err)
		}
		var lookUps []string
		for keys.Next() {
			var child, parent, from, to string
			if err := keys.Scan(&child, &parent, &from, &to); err != nil {
				t.Fatal(err)
			}
			lookUps = append(lookUps, fmt.Sprintf(`SELECT count(*) FROM %q WHERE %q NOT IN (SELECT %q FROM %q WHERE %[3]q IS NOT NULL)`, child, from, to, parent))
		}
		for _, q := range lookUps {
			if got := value(t, path, q); got != int64(0) {
				t.Errorf("%s: %s: %v", path, q, got)
			}
		}
		tables, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table'`)
		if err != nil {
			t.Fatal(err)
		}
		for tables.Next() {
			var name string
			if err := tables.Scan(&name); err != nil {
				t.Fatal(err)
			}
			var found any
			err := open(t, path).QueryRow(`SELECT count(*) FROM pragma_foreign_key_check(?)`, name).Scan(&found)
			if err != nil && strings.Contains(err.Error(), "foreign key mismatch") {
				continue
			}
			if err != nil || found != int64(0) {
				t.Errorf("%s, table %s: foreign_key_check finds %v, %v", path, name, found, err)
			}
		}
	}
}

// benchmark makes one with one database, t.
func benchmark(t *testing.T, schema string, golds ...string) string {
	dir := t.TempDir()
	path := filepath.Join(dir, "database", "t", "t.sqlite")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path).Exec(schema); err != nil {
		t.Fatal(err)
	}
	var questions []map[string]string
	for _, gold := range golds {
		questions = append(questions, map[string]string{"db_id": "t", "question": "?", "query": gold})
	}
	writeJSON(t, filepath.Join(dir, "train.json"), questions)
	return dir
}

func empty(t *testing.T, path string) {
	db := open(t, path)
	rows, err := db.Query(`SELECT 'DELETE FROM "' || name || '"' FROM sqlite_schema WHERE type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	var statements []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		statements = append(statements, s)
	}
	if _, err := db.Exec(strings.Join(statements, ";")); err != nil {
		t.Fatal(err)
	}
}

// objects lists the schema; triggers are made again, so order does not count.
func objects(t *testing.T, path string) string {
	return fmt.Sprint(value(t, path, `SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' ORDER BY type, name)`))
}

func value(t *testing.T, path, query string) (v any) {
	t.Helper()
	if err := open(t, path).QueryRow(query).Scan(&v); err != nil {
		t.Fatalf("%s: %s: %v", path, query, err)
	}
	return v
}

func open(t *testing.T, path string) *sql.DB {
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func writeJSON(t *testing.T, path string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
