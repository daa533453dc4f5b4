package fill

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	_ "github.com/mattn/go-sqlite3" // the SQLite driver of database/sql
)

// database is the copy being filled. One connection writes it. SQLite enforces
// keys, NOT NULL, CHECK and types as rows go in; foreign keys are off meanwhile,
// because cycles cannot be filled otherwise, and mend settles them.
type database struct {
	conn   *sql.DB
	tables []*table
	// triggers are dropped while rows go in, and put back at the end.
	triggers []string
	inserts  map[*table]*sql.Stmt
}

// address is the path as the driver takes it. A journal in memory is enough: a copy
// that is not finished is removed.
func address(path string) string {
	file := url.URL{Scheme: "file", OmitHost: true, Path: path}
	return file.String() + "?_journal_mode=MEMORY&_synchronous=OFF&_foreign_keys=0"
}

// openForWriting opens the copy at path.
func openForWriting(path string) (*database, error) {
	conn, err := sql.Open("sqlite3", address(path))
	if err != nil {
		return nil, err
	}
	conn.SetMaxOpenConns(1)
	d := &database{conn: conn, inserts: map[*table]*sql.Stmt{}}
	if err := d.read(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *database) read() (err error) {
	if err = d.exec("PRAGMA trusted_schema = OFF"); err != nil {
		return err
	}
	if d.tables, err = readTables(d.conn); err != nil {
		return err
	}
	for _, t := range d.tables {
		if err := d.load(t); err != nil {
			return err
		}
		t.kept = len(t.rows) > 0
	}
	return nil
}

func (d *database) close() error {
	for _, insert := range d.inserts {
		insert.Close()
	}
	return d.conn.Close()
}

func (d *database) exec(statement string, values ...any) error {
	_, err := d.conn.Exec(statement, values...)
	return err
}

func (d *database) dropTriggers() error {
	var names []string
	err := each(d.conn, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid", nil, func(row []any) {
		names, d.triggers = append(names, text(row[0])), append(d.triggers, text(row[1]))
	})
	for _, name := range names {
		err = errors.Join(err, d.exec("DROP TRIGGER "+quote(name)))
	}
	return err
}

func (d *database) restoreTriggers() error {
	for _, create := range d.triggers {
		if err := d.exec(create); err != nil {
			return err
		}
	}
	return nil
}

// transaction changes rows, then mends the foreign keys, and commits.
func (d *database) transaction(r *rand.Rand, change func() error) error {
	if err := d.exec("BEGIN"); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	if err := d.mend(r); err != nil {
		return err
	}
	return d.exec("COMMIT")
}

// maxLoaded bounds the rows of a table that are kept in memory: not all of a table
// that is full already, or to which witnesses added many.
const maxLoaded = 1000

// load reads a table's rows. The plus signs keep the driver from turning texts
// of DATE columns into something else.
func (d *database) load(t *table) error {
	t.rows = nil
	return each(d.conn, fmt.Sprintf("SELECT %s FROM %s LIMIT %d", t.list("+"), quote(t.name), maxLoaded), nil, func(row []any) {
		t.rows = append(t.rows, row)
	})
}

// count is the number of rows in the tables that were empty.
func (d *database) count() (rows int, err error) {
	for _, t := range d.tables {
		if t.kept {
			continue
		}
		err = errors.Join(err, each(d.conn, "SELECT count(*) FROM "+quote(t.name), nil, func(row []any) {
			rows += int(row[0].(int64))
		}))
	}
	return rows, err
}

// list writes the table's column names with a prefix before each.
func (t *table) list(prefix string) string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = prefix + quote(c.name)
	}
	return strings.Join(names, ", ")
}

// insert puts a row in and keeps it as SQLite stored it. The error says which
// constraint refuses it.
func (d *database) insert(t *table, row []any) error {
	statement := d.inserts[t]
	if statement == nil {
		var names, marks []string
		for _, c := range t.columns {
			if !c.computed {
				names, marks = append(names, quote(c.name)), append(marks, "?")
			}
		}
		var err error
		statement, err = d.conn.Prepare(fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) RETURNING %s",
			quote(t.name), strings.Join(names, ", "), strings.Join(marks, ", "), t.list("+")))
		if err != nil {
			return err
		}
		d.inserts[t] = statement
	}
	var values []any
	for i, c := range t.columns {
		if c.dangling != "" && (row[i] != nil || c.required || c.computed) {
			return c.danglingError()
		}
		if !c.computed {
			values = append(values, row[i])
		}
	}
	stored := make([]any, len(t.columns))
	if err := statement.QueryRow(values...).Scan(pointers(stored)...); err != nil {
		return err
	}
	t.rows = append(t.rows, stored)
	return nil
}

// update sets columns of one stored row to values.
func (d *database) update(t *table, row []any, columns []int, values []any) error {
	var set []string
	for i, c := range columns {
		if t.columns[c].dangling != "" && values[i] != nil {
			return t.columns[c].danglingError()
		}
		set = append(set, quote(t.columns[c].name)+" = ?")
	}
	condition, old := t.matching(row)
	return d.exec(fmt.Sprintf("UPDATE %s SET %s WHERE %s", quote(t.name), strings.Join(set, ", "), condition),
		slices.Concat(values, old)...)
}

func (d *database) remove(t *table, row []any) error {
	condition, old := t.matching(row)
	return d.exec(fmt.Sprintf("DELETE FROM %s WHERE %s", quote(t.name), condition), old...)
}

// matching is the condition that holds for a row and its equals alone.
func (t *table) matching(row []any) (condition string, values []any) {
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(t.columns)), ", ")
	return fmt.Sprintf("(%s) IS (%s)", t.list(""), marks), row
}

// mend makes every foreign key of the filled tables hold: a row that refers to
// nothing is given a row to refer to, else NULL, else it goes.
func (d *database) mend(r *rand.Rand) error {
	for round := 0; ; round++ {
		broken := 0
		for _, t := range d.tables {
			for _, ref := range t.refs {
				if t.kept {
					continue
				}
				orphans, err := d.orphans(t, ref)
				if err != nil {
					return err
				}
				broken += len(orphans)
				for _, row := range orphans {
					if err := d.adopt(t, ref, row, r, round); err != nil {
						return err
					}
				}
			}
		}
		for _, t := range d.tables {
			if err := d.load(t); err != nil {
				return err
			}
		}
		if broken == 0 {
			return nil
		}
	}
}

// orphans are the rows whose reference finds no row. As SQLite does, values are
// compared with the parent's affinity and collation; a reference with a NULL in
// it refers to nothing.
func (d *database) orphans(t *table, ref reference) (rows [][]any, err error) {
	var set, match []string
	for i, c := range ref.columns {
		child := "child." + quote(t.columns[c].name)
		set = append(set, child+" IS NOT NULL")
		match = append(match, "parent."+quote(ref.parent.columns[ref.target[i]].name)+" = +"+child)
	}
	err = each(d.conn, fmt.Sprintf("SELECT %s FROM %s AS child WHERE %s AND NOT EXISTS (SELECT 1 FROM %s AS parent WHERE %s)",
		t.list("+child."), quote(t.name), strings.Join(set, " AND "), quote(ref.parent.name), strings.Join(match, " AND ")),
		nil, func(row []any) { rows = append(rows, row) })
	return rows, err
}

// mendRounds is how often rows may be changed before what still refers to nothing
// is removed; removing ends.
const mendRounds = 5

func (d *database) adopt(t *table, ref reference, row []any, r *rand.Rand, round int) error {
	if round < mendRounds {
		for range 3 {
			if len(ref.parent.rows) == 0 {
				break
			}
			parent := pick(r, ref.parent.rows)
			if d.update(t, row, ref.columns, cells(parent, ref.target)) == nil {
				return nil
			}
		}
		if d.update(t, row, ref.columns, make([]any, len(ref.columns))) == nil {
			return nil
		}
	}
	return d.remove(t, row)
}

// cells are the row's values in those columns.
func cells(row []any, columns []int) []any {
	values := make([]any, len(columns))
	for i, c := range columns {
		values[i] = row[c]
	}
	return values
}

// each runs a query of our own and visits its rows.
func each(conn *sql.DB, query string, values []any, visit func(row []any)) error {
	rows, err := conn.Query(query, values...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		row := make([]any, len(names))
		if err := rows.Scan(pointers(row)...); err != nil {
			return err
		}
		visit(row)
	}
	return rows.Err()
}

func pointers(row []any) []any {
	p := make([]any, len(row))
	for i := range row {
		p[i] = &row[i]
	}
	return p
}
