package sql

import "strings"

// Schema describes a database: its tables with typed columns and its foreign
// keys. Names keep the case of the database; look-ups ignore case, as SQLite
// does.
type Schema struct {
	Tables      []SchemaTable
	ForeignKeys []ForeignKey
}

// SchemaTable is one table or view.
type SchemaTable struct {
	Name    string
	Columns []SchemaColumn
}

// SchemaColumn is one column. Type is the declared type, "" when there is none.
type SchemaColumn struct {
	Name       string
	Type       string
	PrimaryKey bool
}

// ForeignKey says that Table.Column refers to RefTable.RefColumn.
type ForeignKey struct {
	Table, Column       string
	RefTable, RefColumn string
}

// Table finds a table by name, nil if there is none. A nil schema has none.
func (s *Schema) Table(name string) *SchemaTable {
	if s == nil {
		return nil
	}
	for i := range s.Tables {
		if strings.EqualFold(s.Tables[i].Name, name) {
			return &s.Tables[i]
		}
	}
	return nil
}

// Column finds a column by name, nil if there is none.
func (t *SchemaTable) Column(name string) *SchemaColumn {
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}
