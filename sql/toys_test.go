package sql

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
)

// toyTables are the tables of a small database made for tests. Names repeat
// between tables, need quotes or are keywords; values have duplicates, NULLs and
// types that their columns do not declare.
var toyTables = []struct {
	toySource
	declaration string
}{
	{toySource{"singer", []string{"id", "name", "country", "age", "full name"}},
		`CREATE TABLE singer(id INTEGER PRIMARY KEY, name TEXT, country varchar(20), age int, "full name" text);
			CREATE INDEX by_age ON singer(age)`},
	{toySource{"Concert", []string{"Id", "Name", "singer_id", "year", "END"}},
		`CREATE TABLE "Concert"("Id" INTEGER, "Name" TEXT, singer_id INTEGER REFERENCES singer(id), year date, "END" REAL)`},
	{toySource{"order", []string{"id", "group", "amount"}},
		`CREATE TABLE "order"(id TEXT PRIMARY KEY, "group", amount NUMERIC) WITHOUT ROWID`},
	{toySource{"tiny", []string{"only"}}, `CREATE TABLE tiny("only")`},
}

func toySources() (sources []toySource) {
	for _, table := range toyTables {
		sources = append(sources, table.toySource)
	}
	return sources
}

// openToys makes the small database in memory, with rows drawn from the seed.
func openToys(t testing.TB, seed uint64) *sql.DB {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	rng := rand.New(rand.NewPCG(seed, 0))
	values := []string{"NULL", "0", "1", "1", "2", "3", "20", "30", "'x'", "'X'", "'Paris'", "'1'", "'20'", "1.5", "2.0", "''", "x'31'"}
	for _, table := range toyTables {
		if _, err := db.Exec(table.declaration); err != nil {
			t.Fatal(err)
		}
		for range 7 {
			row := make([]string, len(table.columns))
			for i, c := range table.columns {
				row[i] = one(rng, values...)
				if strings.EqualFold(c, "id") {
					row[i] = one(rng, "1", "2", "3", "4", "5", "6", "7", "8")
				}
			}
			if _, err := db.Exec("INSERT OR IGNORE INTO " + quoteName(table.name) + " VALUES (" + strings.Join(row, ",") + ")"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return db
}

// rawConn calls f with the driver's own connection.
func rawConn(t testing.TB, db *sql.DB, f func(*sqlite3.SQLiteConn)) {
	t.Helper()
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Raw(func(c any) error { f(c.(*sqlite3.SQLiteConn)); return nil })
}

// schemaOf reads a database's tables by PRAGMA.
func schemaOf(t testing.TB, db *sql.DB) *Schema {
	t.Helper()
	rows, err := db.Query(`SELECT l.name, l.wr OR l.type = 'view', c.name, c.type, c.pk > 0 FROM pragma_table_list AS l, pragma_table_info(l.name) AS c
		WHERE l.schema = 'main' ORDER BY l.name, c.cid`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	s := &Schema{}
	for rows.Next() {
		var table string
		var noRowID bool
		var c SchemaColumn
		if err := rows.Scan(&table, &noRowID, &c.Name, &c.Type, &c.PrimaryKey); err != nil {
			t.Fatal(err)
		}
		if n := len(s.Tables); n == 0 || s.Tables[n-1].Name != table {
			s.Tables = append(s.Tables, SchemaTable{Name: table, NoRowID: noRowID})
		}
		last := &s.Tables[len(s.Tables)-1]
		last.Columns = append(last.Columns, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}
