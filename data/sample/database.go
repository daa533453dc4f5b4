package sample

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/mattn/go-sqlite3" // the SQLite driver of database/sql
)

// database is one database with its rows and its questions.
type database struct {
	schema   *schema
	splits   map[string]int // questions wanted by split
	sizes    []int          // rows by table
	rows     [][][]any      // table, row, column
	examples []example
}

// example is one question with its gold query.
type example struct {
	split    string
	question string
	query    *Query
	style    Style
}

// designDatabases lays out all schemas. It runs in one goroutine because a
// deck deals all databases of a vocabulary.
func designDatabases(o Options) []*database {
	var all []*database
	add := func(d *designer, count int, splits map[string]int) {
		for range count {
			s := d.schema()
			r := randomFor(o.Seed, "sizes", s.id)
			sizes := make([]int, len(s.tables))
			for t := range sizes {
				sizes[t] = 30 + r.IntN(50)
			}
			if o.LargeEvery > 0 && len(all)%o.LargeEvery == o.LargeEvery/2 {
				sizes[len(sizes)-1] = o.LargeRows
			}
			all = append(all, &database{schema: s, splits: splits, sizes: sizes})
		}
	}
	known := newDesigner(knownWords, o.Seed)
	add(known, o.TrainDatabases, map[string]int{Train: o.Questions, Dev: o.DevQuestions})
	add(known, o.TestDatabases, map[string]int{Test: o.Questions})
	add(newDesigner(unknownWords, o.Seed), o.NewWordsDatabases, map[string]int{NewWords: o.Questions})
	return all
}

// build fills the tables, writes the SQLite file below dir and composes the
// questions, each checked by running its query on the file.
func (d *database) build(dir string, o Options) error {
	d.fill(randomFor(o.Seed, "rows", d.schema.id))
	path := databasePath(dir, d.schema.id)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	connection, err := openDatabase(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer connection.Close()
	if err := d.store(connection); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := d.compose(connection, o.Seed); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return connection.Close()
}

func databasePath(dir, id string) string {
	return filepath.Join(dir, "database", id, id+".sqlite")
}

// openDatabase opens a database for writing. One connection keeps the settings
// in force; no journal is needed since the whole benchmark is renamed into
// place when it is complete.
func openDatabase(path string) (*sql.DB, error) {
	connection, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=OFF&_synchronous=OFF")
	if err != nil {
		return nil, err
	}
	connection.SetMaxOpenConns(1)
	_, err = connection.Exec("PRAGMA page_size = 4096; PRAGMA encoding = 'UTF-8'")
	return connection, err
}

// fill draws all rows. Values repeat, some are missing, some categories are
// written in lower case by a careless hand.
func (d *database) fill(r *rand.Rand) {
	size := map[string]int{}
	for t, tab := range d.schema.tables {
		size[tab.name] = d.sizes[t]
		rows := make([][]any, d.sizes[t])
		for i := range rows {
			rows[i] = make([]any, len(tab.columns))
			for c, col := range tab.columns {
				switch {
				case col.parent != "":
					rows[i][c] = int64(1 + skewed(r, size[col.parent]))
				case col.attribute == nil:
					rows[i][c] = int64(1 + i)
				default:
					rows[i][c] = cell(r, col.attribute)
				}
			}
		}
		d.rows = append(d.rows, rows)
	}
}

// skewed draws from 0..n-1, small numbers more often: some parents have many
// children, some none.
func skewed(r *rand.Rand, n int) int {
	return min(r.IntN(n), r.IntN(n))
}

func cell(r *rand.Rand, a *attribute) any {
	if a.nullable && chance(r, 0.05) {
		return nil
	}
	v := a.draw(r)
	if a.kind == category && chance(r, 0.02) {
		return strings.ToLower(v.(string))
	}
	return v
}

// store writes tables and rows in one transaction, in a fixed order: the same
// rows give the same file.
func (d *database) store(connection *sql.DB) error {
	transaction, err := connection.Begin()
	if err != nil {
		return err
	}
	defer transaction.Rollback()
	for t, tab := range d.schema.tables {
		if _, err := transaction.Exec(d.schema.create(tab)); err != nil {
			return fmt.Errorf("table %s: %w", tab.name, err)
		}
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(tab.columns)), ", ")
		insert, err := transaction.Prepare("INSERT INTO " + tab.name + " VALUES (" + marks + ")")
		if err != nil {
			return fmt.Errorf("table %s: %w", tab.name, err)
		}
		for i, row := range d.rows[t] {
			if _, err := insert.Exec(row...); err != nil {
				return fmt.Errorf("table %s, row %d: %w", tab.name, i+1, err)
			}
		}
		insert.Close()
	}
	return transaction.Commit()
}

// create returns the CREATE TABLE statement of t.
func (s *schema) create(t *table) string {
	var lines []string
	for _, c := range t.columns {
		line := c.name + " " + c.declaredType()
		if c.parent != "" {
			line += " NOT NULL"
		} else if c.attribute == nil {
			line += " PRIMARY KEY"
		}
		lines = append(lines, line)
	}
	for _, c := range t.columns {
		if c.parent != "" {
			lines = append(lines, fmt.Sprintf("FOREIGN KEY (%s) REFERENCES %s(%s)", c.name, c.parent, s.key))
		}
	}
	return "CREATE TABLE " + t.name + " (\n  " + strings.Join(lines, ",\n  ") + "\n)"
}

func (c column) declaredType() string {
	switch {
	case c.attribute == nil || c.attribute.kind == whole:
		return "INTEGER"
	case c.attribute.kind == decimal:
		return "REAL"
	default:
		return "TEXT"
	}
}
