package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// database is one of the shared test databases, opened read-only.
type database struct {
	*sql.DB
	hasRows bool
	schema  *Schema
}

// databases opens shared databases by name, each once: the one with rows where
// there is one, else the one that has empty tables.
type databases struct {
	t    testing.TB
	open map[string]*database
}

func openDatabases(t testing.TB) *databases {
	return &databases{t, map[string]*database{}}
}

// get returns the database of a benchmark ("spider" or "bird"), nil if there is
// none.
func (d *databases) get(benchmark, name string) *database {
	key := benchmark + "/" + name
	if db, found := d.open[key]; found {
		return db
	}
	d.open[key] = nil
	for _, folder := range []string{"database", "database_schema_only"} {
		path := filepath.Join(sharedData(d.t), benchmark, folder, name, name+".sqlite")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro&immutable=1")
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { db.Close() })
		db.SetMaxOpenConns(1)
		d.open[key] = &database{db, folder == "database", schemaOf(d.t, db)}
		break
	}
	return d.open[key]
}

// errSlow says that a query ran for too long.
var errSlow = errors.New("slow")

// rows runs a query and returns its rows, one string each. Numbers that are equal
// look alike: which of 1 and 1.0 DISTINCT keeps is SQLite's choice.
func rows(db *sql.DB, text string) ([]string, error) {
	const most = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	result, err := db.QueryContext(ctx, text)
	if err != nil {
		return nil, slowOr(ctx, err)
	}
	defer result.Close()
	names, err := result.Columns()
	if err != nil {
		return nil, err
	}
	values, targets := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	var list []string
	for result.Next() && len(list) < 1e5 {
		if err := result.Scan(targets...); err != nil {
			return nil, err
		}
		var row strings.Builder
		for _, v := range values {
			switch v.(type) {
			case int64, float64:
				fmt.Fprintf(&row, "%v|", v)
			default:
				fmt.Fprintf(&row, "%T %v|", v, v)
			}
		}
		list = append(list, row.String())
	}
	return list, slowOr(ctx, result.Err())
}

func slowOr(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errSlow
	}
	return err
}

// program is the byte code that SQLite makes of a query: equal programs compute
// the same on any rows.
func program(db *sql.DB, text string) (string, error) {
	lines, err := rows(db, "EXPLAIN "+text)
	return strings.Join(lines, "\n"), err
}
