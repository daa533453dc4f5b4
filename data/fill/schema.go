package fill

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	capersql "caper/sql"
)

// table is one ordinary table of the database being filled.
type table struct {
	name    string
	columns []*column
	// keys are the sets of columns that no two rows share: the primary key and
	// every UNIQUE constraint.
	keys [][]int
	// primaryKey lists the columns of the primary key in its order.
	primaryKey []int
	refs       []reference
	// rows are the rows as SQLite stored them.
	rows [][]any
	// kept says that the table had rows of its own, which stay as they are.
	kept   bool
	strict bool
	checks []string // the conditions of its CHECK constraints
}

// column is one column of a table.
type column struct {
	table    *table
	name     string
	declared string
	affinity capersql.Affinity
	// required says NOT NULL, written or implied by the primary key.
	required bool
	// computed says that SQLite makes the value: a generated column.
	computed bool
	// unique says that the column alone is a key.
	unique bool
	// noNull keeps NULL out where it is allowed but would spoil things: others refer
	// to the column, or a query looks for what is not in it, and with one NULL there
	// `x NOT IN (...)` holds for no x.
	noNull bool
	// dangling is the missing table that the column refers to, which nothing but NULL
	// may do.
	dangling string
	domain   *domain
}

func (c *column) danglingError() error {
	return fmt.Errorf("column %s refers to table %s, which does not exist", c.name, c.dangling)
}

// reference is a foreign key: the columns repeat the target columns of a row of
// parent.
type reference struct {
	columns []int
	parent  *table
	target  []int
}

const tablesQuery = `
	SELECT l.name, l.strict, coalesce(s.sql, '')
	FROM pragma_table_list AS l JOIN sqlite_schema AS s ON s.name = l.name
	WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite\_%' ESCAPE '\'
	ORDER BY s.rowid`

const columnsQuery = `SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid`

// Key columns by index; an index over an expression is left to SQLite.
const keysQuery = `
	SELECT l.name, i.cid FROM pragma_index_list(?) AS l JOIN pragma_index_info(l.name) AS i
	WHERE l."unique" AND NOT l.partial ORDER BY l.seq, i.seqno`

const referencesQuery = `SELECT id, "table", "from", coalesce("to", '') FROM pragma_foreign_key_list(?) ORDER BY id DESC, seq`

// readTables reads the ordinary tables with all that constrains their rows.
func readTables(conn *sql.DB) ([]*table, error) {
	var tables []*table
	err := each(conn, tablesQuery, nil, func(row []any) {
		t := &table{name: text(row[0]), strict: row[1] == int64(1), checks: checks(text(row[2]))}
		tables = append(tables, t)
	})
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if err := t.readColumns(conn); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	for _, t := range tables {
		if err := errors.Join(t.readReferences(conn, tables), t.readDangling(conn)); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return tables, nil
}

func (t *table) readColumns(conn *sql.DB) error {
	primary := map[int]int{} // rank in the primary key to column
	err := each(conn, columnsQuery, []any{t.name}, func(row []any) {
		rank := int(row[3].(int64))
		c := &column{
			table: t, name: text(row[0]), declared: text(row[1]), affinity: capersql.TypeAffinity(text(row[1])),
			required: row[2] == int64(1) || rank > 0, computed: row[4] != int64(0),
		}
		if rank > 0 {
			primary[rank] = len(t.columns)
		}
		t.columns = append(t.columns, c)
	})
	if err != nil {
		return err
	}
	for rank := 1; rank <= len(primary); rank++ {
		t.primaryKey = append(t.primaryKey, primary[rank])
	}
	if len(primary) > 0 {
		t.keys = append(t.keys, t.primaryKey)
	}
	byIndex := map[string]int{} // index name to place in keys
	err = each(conn, keysQuery, []any{t.name}, func(row []any) {
		place, ok := byIndex[text(row[0])]
		if !ok {
			place = len(t.keys)
			byIndex[text(row[0])] = place
			t.keys = append(t.keys, nil)
		}
		t.keys[place] = append(t.keys[place], int(row[1].(int64)))
	})
	t.keys = slices.DeleteFunc(t.keys, func(key []int) bool { return slices.Min(key) < 0 })
	for _, key := range t.keys {
		if len(key) == 1 {
			t.columns[key[0]].unique = true
		}
	}
	return err
}

// danglingQuery lists the columns of foreign keys to missing tables, those that may be
// NULL first.
const danglingQuery = `
	SELECT f.id, f."table", x.name FROM pragma_foreign_key_list(?1) AS f JOIN pragma_table_xinfo(?1) AS x ON x.name = f."from" COLLATE NOCASE
	WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema AS s WHERE s.name = f."table" COLLATE NOCASE)
	ORDER BY f.id, x."notnull" OR x.pk OR x.hidden, f.seq`

// readDangling notes the foreign keys to missing tables, at one column of each: a NULL
// there is enough.
func (t *table) readDangling(conn *sql.DB) error {
	var last any
	return each(conn, danglingQuery, []any{t.name}, func(row []any) {
		if column := t.index(text(row[2])); row[0] != last && column >= 0 {
			t.columns[column].dangling = text(row[1])
		}
		last = row[0]
	})
}

// readReferences leaves out foreign keys to what does not exist.
func (t *table) readReferences(conn *sql.DB, tables []*table) error {
	var last any
	var broken bool
	return each(conn, referencesQuery, []any{t.name}, func(row []any) {
		if row[0] != last {
			last, broken = row[0], false
			t.refs = append(t.refs, reference{parent: tableNamed(tables, text(row[1]))})
		} else if broken {
			return
		}
		ref := &t.refs[len(t.refs)-1]
		column, target := t.index(text(row[2])), -1
		if ref.parent != nil {
			if target = ref.parent.index(text(row[3])); text(row[3]) == "" && len(ref.columns) < len(ref.parent.primaryKey) {
				target = ref.parent.primaryKey[len(ref.columns)]
			}
		}
		if broken = column < 0 || target < 0; broken {
			t.refs = t.refs[:len(t.refs)-1]
			return
		}
		ref.columns, ref.target = append(ref.columns, column), append(ref.target, target)
	})
}

// addReference adds a foreign key that only the benchmark's tables file declares.
func addReference(tables []*table, key capersql.ForeignKey) {
	t, parent := tableNamed(tables, key.Table), tableNamed(tables, key.RefTable)
	if t == nil || parent == nil {
		return
	}
	column, target := t.index(key.Column), parent.index(key.RefColumn)
	if column < 0 || target < 0 || t == parent && column == target {
		return
	}
	for _, ref := range t.refs {
		if i := slices.Index(ref.columns, column); i >= 0 && ref.parent == parent && ref.target[i] == target {
			return
		}
	}
	t.refs = append(t.refs, reference{[]int{column}, parent, []int{target}})
}

func tableNamed(tables []*table, name string) *table {
	i := slices.IndexFunc(tables, func(t *table) bool { return strings.EqualFold(t.name, name) })
	if i < 0 {
		return nil
	}
	return tables[i]
}

// index is the place of a column, -1 if there is none.
func (t *table) index(name string) int {
	return slices.IndexFunc(t.columns, func(c *column) bool { return strings.EqualFold(c.name, name) })
}

// quote writes a name so that SQLite reads it as one.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// text is a cell as a string, "" for NULL.
func text(v any) string {
	s, _ := v.(string)
	return s
}
