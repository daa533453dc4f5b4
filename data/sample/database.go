package sample

import (
	"context"
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

// compose finds the questions of every split. A query is kept when it runs,
// returns between 1 and maxRows rows that are not all NULL, returns the same
// whatever order SQLite visits rows in (so that the gold result is a fact about
// the data), and is new in this database.
func (d *database) compose(connection *sql.DB, seed uint64) error {
	const maxRows, tries, triesOfAShape = 1000, 400, 16
	seen := map[string]bool{}
	for _, split := range Splits {
		for i := range d.splits[split] {
			r := randomFor(seed, "question", d.schema.id, split, fmt.Sprint(i))
			b := &builder{r, d}
			found, shape := false, b.shape()
			for t := 1; t <= tries && !found; t++ {
				if t%triesOfAShape == 0 {
					shape = b.shape()
				}
				q, ok := shape()
				if !ok {
					continue
				}
				e := example{split: split, query: q, style: goldStyle(r), question: question(q, r)}
				text := q.SQL(Style{})
				if seen[text] || seen[e.question] {
					continue
				}
				ok, err := wellDefined(connection, q.SQL(e.style), maxRows)
				if err != nil {
					return fmt.Errorf("gold query %s: %w", text, err)
				}
				if ok {
					seen[text], seen[e.question] = true, true
					d.examples = append(d.examples, e)
					found = true
				}
			}
			if !found {
				return fmt.Errorf("no new question for split %s after %d tries: ask for fewer questions a database", split, tries)
			}
		}
	}
	return nil
}

func wellDefined(connection *sql.DB, query string, maxRows int) (bool, error) {
	forward, err := run(context.Background(), connection, query, maxRows)
	if err != nil || len(forward) == 0 || len(forward) > maxRows {
		return false, err
	}
	informative := false
	for _, row := range forward {
		for _, v := range row {
			informative = informative || v != nil
		}
	}
	if !informative {
		return false, nil
	}
	if _, err := connection.Exec("PRAGMA reverse_unordered_selects = ON"); err != nil {
		return false, err
	}
	backward, err := run(context.Background(), connection, query, maxRows)
	if err != nil {
		return false, err
	}
	if _, err := connection.Exec("PRAGMA reverse_unordered_selects = OFF"); err != nil {
		return false, err
	}
	return sameRows(forward, backward, strings.Contains(query, "ORDER BY")), nil
}

// run returns at most limit+1 rows of a query.
func run(ctx context.Context, connection *sql.DB, query string, limit int) ([][]any, error) {
	cursor, err := connection.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	columns, err := cursor.Columns()
	if err != nil {
		return nil, err
	}
	var rows [][]any
	for len(rows) <= limit && cursor.Next() {
		row, targets := make([]any, len(columns)), make([]any, len(columns))
		for c := range row {
			targets[c] = &row[c]
		}
		if err := cursor.Scan(targets...); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, cursor.Err()
}

// sameRows compares two results as lists or as bags.
func sameRows(a, b [][]any, ordered bool) bool {
	if len(a) != len(b) {
		return false
	}
	count := map[string]int{}
	for i := range a {
		x, y := fmt.Sprintf("%#v", a[i]), fmt.Sprintf("%#v", b[i])
		if ordered && x != y {
			return false
		}
		count[x]++
		count[y]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
