package fill

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"

	capersql "caper/sql"
)

// types are the declared types for those of a tables file. Its numbers may be
// whole or not, and its times are texts of some layout.
var types = map[string]string{"number": "NUMERIC", "text": "TEXT", "time": "TEXT", "boolean": "BOOLEAN"}

// create makes an empty database of a described schema.
func create(path string, s *capersql.Schema) error {
	conn, err := sql.Open("sqlite3", address(path))
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, t := range s.Tables {
		if _, err := conn.Exec(createTable(s, t)); err != nil {
			return fmt.Errorf("table %s as described: %w", t.Name, err)
		}
	}
	return conn.Close()
}

func createTable(s *capersql.Schema, t capersql.SchemaTable) string {
	var lines, key []string
	for _, c := range t.Columns {
		declared, ok := types[strings.ToLower(c.Type)]
		if !ok {
			declared = c.Type
		}
		lines = append(lines, quote(c.Name)+" "+declared)
		if c.PrimaryKey {
			key = append(key, quote(c.Name))
		}
	}
	if len(key) > 0 {
		lines = append(lines, "PRIMARY KEY ("+strings.Join(key, ", ")+")")
	}
	for _, k := range s.ForeignKeys {
		if k.Table == t.Name {
			lines = append(lines, fmt.Sprintf("FOREIGN KEY (%s) REFERENCES %s (%s)", quote(k.Column), quote(k.RefTable), quote(k.RefColumn)))
		}
	}
	return fmt.Sprintf("CREATE TABLE %s (%s)", quote(t.Name), strings.Join(slices.Compact(lines), ", "))
}
