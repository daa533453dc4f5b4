package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"caper/sql"
)

// tableFields is one database in a tables file (tables.json and its like). Columns
// are numbered through all tables; column 0 is the star.
type tableFields struct {
	DBID        string            `json:"db_id"`
	TableNames  []string          `json:"table_names_original"`
	ColumnNames []numberedName    `json:"column_names_original"`
	ColumnTypes []string          `json:"column_types"`
	PrimaryKeys []json.RawMessage `json:"primary_keys"` // a column, or a list of them
	ForeignKeys [][2]int          `json:"foreign_keys"`
}

// numberedName is [table index, column name].
type numberedName struct {
	table int
	name  string
}

func (n *numberedName) UnmarshalJSON(text []byte) error {
	pair := [2]any{&n.table, &n.name}
	return json.Unmarshal(text, &pair)
}

// readTables reads the schemas of all tables files, by database.
func (b *Benchmark) readTables() (map[string]*sql.Schema, error) {
	schemas := map[string]*sql.Schema{}
	for _, path := range existing(b.Dir, b.layout.tables) {
		for i, err := range readJSONList(path) {
			if err != nil {
				return nil, err
			}
			var f tableFields
			if _, err := unmarshalWithExtra(i.text, &f); err != nil {
				return nil, i.errorf("%w", err)
			}
			s, err := f.schema()
			if err != nil {
				return nil, i.errorf("%w", err)
			}
			schemas[f.DBID] = s
		}
	}
	return schemas, nil
}

func (f *tableFields) schema() (*sql.Schema, error) {
	if f.DBID == "" {
		return nil, errors.New("db_id: missing")
	}
	s := &sql.Schema{Tables: make([]sql.SchemaTable, len(f.TableNames))}
	for i, name := range f.TableNames {
		s.Tables[i].Name = name
	}
	place := make([]int, len(f.ColumnNames)) // of each column in its table
	for i, c := range f.ColumnNames {
		if c.table < 0 {
			continue // the star
		}
		if c.table >= len(s.Tables) || i >= len(f.ColumnTypes) {
			return nil, fmt.Errorf("column_names_original: column %d of %s: no such table, or no type", i, f.DBID)
		}
		t := &s.Tables[c.table]
		place[i] = len(t.Columns)
		t.Columns = append(t.Columns, sql.SchemaColumn{Name: c.name, Type: declaredType(f.ColumnTypes[i])})
	}
	column := func(i int) (*sql.SchemaTable, *sql.SchemaColumn, error) {
		if i < 0 || i >= len(f.ColumnNames) || f.ColumnNames[i].table < 0 {
			return nil, nil, fmt.Errorf("%s has no column %d", f.DBID, i)
		}
		t := &s.Tables[f.ColumnNames[i].table]
		return t, &t.Columns[place[i]], nil
	}
	keys, err := f.primaryKeys()
	if err != nil {
		return nil, err
	}
	for _, i := range keys {
		_, c, err := column(i)
		if err != nil {
			return nil, fmt.Errorf("primary_keys: %w", err)
		}
		c.PrimaryKey = true
	}
	for _, key := range f.ForeignKeys {
		t, c, err := column(key[0])
		rt, rc, refErr := column(key[1])
		if err := errors.Join(err, refErr); err != nil {
			return nil, fmt.Errorf("foreign_keys: %w", err)
		}
		s.ForeignKeys = append(s.ForeignKeys, sql.ForeignKey{Table: t.Name, Column: c.Name, RefTable: rt.Name, RefColumn: rc.Name})
	}
	return s, nil
}

// declaredType is the file's type, one of text, number, time, boolean and others, as
// a schema would declare it.
func declaredType(name string) string {
	if name == "others" {
		return ""
	}
	return name
}

// primaryKeys lists the columns, composite keys flattened.
func (f *tableFields) primaryKeys() (columns []int, err error) {
	for _, raw := range f.PrimaryKeys {
		var one int
		var several []int
		if json.Unmarshal(raw, &one) == nil {
			columns = append(columns, one)
		} else if json.Unmarshal(raw, &several) == nil {
			columns = append(columns, several...)
		} else {
			return nil, fmt.Errorf("primary_keys: want a column or a list of columns, have %.40s", raw)
		}
	}
	return columns, nil
}

// withForeignKeys adds to the declared schema the foreign keys that only described
// has, spelled as the declaration does. described may be nil.
func withForeignKeys(declared, described *sql.Schema) *sql.Schema {
	if described == nil {
		return declared
	}
	for _, k := range described.ForeignKeys {
		t, rt := declared.Table(k.Table), declared.Table(k.RefTable)
		if t == nil || rt == nil {
			continue
		}
		c, rc := t.Column(k.Column), rt.Column(k.RefColumn)
		if c == nil || rc == nil {
			continue
		}
		key := sql.ForeignKey{Table: t.Name, Column: c.Name, RefTable: rt.Name, RefColumn: rc.Name}
		if c != rc && !slices.Contains(declared.ForeignKeys, key) {
			declared.ForeignKeys = append(declared.ForeignKeys, key)
		}
	}
	return declared
}
