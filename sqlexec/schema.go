package sqlexec

import (
	"context"
	"fmt"

	"caper/sql"
)

// Tables and views in the order of their creation, columns in theirs; SQLite's
// own tables and the shadow tables of virtual ones are left out.
const columnsQuery = `
	SELECT t.name, c.name, c.type, c.pk > 0, t.wr OR t.type = 'view'
	FROM pragma_table_list AS t
	JOIN sqlite_schema AS s ON s.name = t.name
	JOIN pragma_table_info(t.name) AS c
	WHERE t.schema = 'main' AND t.type <> 'shadow' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\'
	ORDER BY s.rowid, c.cid`

// A reference without column names means the other table's primary key.
const foreignKeysQuery = `
	SELECT s.name, f."from", f."table", coalesce(f."to",
		(SELECT p.name FROM pragma_table_info(f."table") AS p WHERE p.pk = f.seq + 1))
	FROM sqlite_schema AS s
	JOIN pragma_foreign_key_list(s.name) AS f
	WHERE s.type = 'table'
	ORDER BY s.rowid, f.id DESC, f.seq`

// Schema reads the tables, columns and foreign keys that the file declares. A
// foreign key to a table or column that does not exist is left out. As in Open, the
// limits are the default ones.
func (d *Database) Schema() (*sql.Schema, error) {
	columns, err := d.query(context.Background(), columnsQuery, DefaultLimits())
	if err != nil {
		return nil, &FileError{d.path, fmt.Errorf("its schema: %w", err)}
	}
	keys, err := d.query(context.Background(), foreignKeysQuery, DefaultLimits())
	if err != nil {
		return nil, &FileError{d.path, fmt.Errorf("its foreign keys: %w", err)}
	}
	s := &sql.Schema{}
	for _, row := range columns.Rows {
		name := row[0].(string)
		if n := len(s.Tables); n == 0 || s.Tables[n-1].Name != name {
			s.Tables = append(s.Tables, sql.SchemaTable{Name: name, NoRowID: row[4] == int64(1)})
		}
		t := &s.Tables[len(s.Tables)-1]
		declared, _ := row[2].(string)
		t.Columns = append(t.Columns, sql.SchemaColumn{
			Name: row[1].(string), Type: declared, PrimaryKey: row[3] == int64(1),
		})
	}
	for _, row := range keys.Rows {
		if key, ok := foreignKey(s, row); ok {
			s.ForeignKeys = append(s.ForeignKeys, key)
		}
	}
	return s, nil
}

// foreignKey spells both ends as the tables do.
func foreignKey(s *sql.Schema, row []Value) (key sql.ForeignKey, ok bool) {
	refColumn, _ := row[3].(string)
	key.Table, key.Column, ok = findColumn(s, row[0].(string), row[1].(string))
	if !ok {
		return key, false
	}
	key.RefTable, key.RefColumn, ok = findColumn(s, row[2].(string), refColumn)
	return key, ok
}

func findColumn(s *sql.Schema, table, column string) (tableName, columnName string, ok bool) {
	t := s.Table(table)
	if t == nil {
		return "", "", false
	}
	c := t.Column(column)
	if c == nil {
		return "", "", false
	}
	return t.Name, c.Name, true
}
