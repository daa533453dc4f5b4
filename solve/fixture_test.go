package solve

import (
	"context"
	stdsql "database/sql"
	"path/filepath"
	"testing"
	"time"

	"caper/data"
	"caper/sql"
	"caper/sqlexec"
)

// oneDatabase is a single database under any name.
type oneDatabase struct {
	db     *sqlexec.Database
	schema *sql.Schema
}

func (o oneDatabase) Database(string) (*sqlexec.Database, error) { return o.db, nil }
func (o oneDatabase) Schema(string) (*sql.Schema, error)         { return o.schema, nil }

// makeDatabase fills a database by statements.
func makeDatabase(t testing.TB, timeout time.Duration, statements ...string) oneDatabase {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.sqlite")
	writer, err := stdsql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := writer.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	limits := sqlexec.DefaultLimits()
	if timeout > 0 {
		limits.Timeout = timeout
	}
	db, err := sqlexec.Open(path, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	schema, err := db.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return oneDatabase{db, schema}
}

// shop is a small database with the traps of real ones.
var shop = []string{
	`CREATE TABLE maker(id INTEGER PRIMARY KEY, name TEXT, country TEXT)`,
	`CREATE TABLE car(id INTEGER PRIMARY KEY, maker_id INTEGER REFERENCES maker(id), model TEXT, built TEXT, price REAL, share REAL)`,
	`CREATE TABLE sale(id INTEGER PRIMARY KEY, car_id INTEGER REFERENCES car(id), buyer TEXT, year INTEGER)`,
	`INSERT INTO maker VALUES (1, 'Volvo', 'Sweden'), (2, 'Fiat', 'Italy'), (3, 'Saab', 'Sweden')`,
	`INSERT INTO car VALUES (1, 1, 'amazon', '1961/05/02', 10, 0.25), (2, 2, 'panda', '1980/01/31', 5, 0.5), (3, 2, 'tipo', '1988/06/01', 7, 0.25)`,
	`INSERT INTO sale VALUES (1, 1, 'Ann Lee', 1970), (2, 2, 'Bo', 1981), (3, 3, 'Bo', 1990)`,
}

func rollout(source, query string) Candidate {
	return Candidate{Rollout: data.Rollout{QuestionID: data.IndexID(0), DBID: "shop", Question: "which?", Source: source, SQL: query}}
}

func pool(candidates ...Candidate) Pool {
	return NewPool(data.Question{ID: data.IndexID(0), DBID: "shop", Question: "which?"}, candidates)
}

func examined(t testing.TB, databases Databases, p Pool) []Examined {
	t.Helper()
	x, _, err := NewExaminer(databases, 1<<20).Examine(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
