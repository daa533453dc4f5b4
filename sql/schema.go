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
	NoRowID bool // a view, or a table WITHOUT ROWID
}

// SchemaColumn is one column. Type is the declared type, "" when there is none.
type SchemaColumn struct {
	Name       string
	Type       string
	PrimaryKey bool
	Hidden     bool // a parameter of a table-valued function, which a star leaves out
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

// tableFunctions are SQLite's built-in table-valued functions; their names serve as
// tables too.
var tableFunctions = &Schema{Tables: []SchemaTable{jsonTable("json_each"), jsonTable("json_tree")}}

func jsonTable(name string) SchemaTable {
	return SchemaTable{Name: name, Columns: []SchemaColumn{
		{Name: "key"}, {Name: "value"}, {Name: "type", Type: "TEXT"}, {Name: "atom"}, {Name: "id", Type: "INTEGER"},
		{Name: "parent", Type: "INTEGER"}, {Name: "fullkey", Type: "TEXT"}, {Name: "path", Type: "TEXT"},
		{Name: "json", Hidden: true}, {Name: "root", Hidden: true},
	}}
}
