package exactmatch

import (
	"strings"

	"caper/sql"
)

// Schema is a database as the official parser sees it: names in small letters.
type Schema struct {
	columns map[string]map[string]bool // by table
	merged  map[string]string          // table.column to the one that stands for it
}

// NewSchema takes tables and columns from the database's schema, and the foreign
// keys that Compare merges from the benchmark's tables file, which is where the
// official script has them from. Without a tables file described is nil, and nothing
// is merged.
func NewSchema(database, described *sql.Schema) *Schema {
	s := &Schema{columns: map[string]map[string]bool{}, merged: map[string]string{}}
	for _, t := range database.Tables {
		columns := map[string]bool{}
		for _, c := range t.Columns {
			columns[strings.ToLower(c.Name)] = true
		}
		s.columns[strings.ToLower(t.Name)] = columns
	}
	if described != nil {
		s.mergeForeignKeys(described)
	}
	return s
}

// mergeForeignKeys groups columns that foreign keys connect and names each group by
// its first column in the file. A key joins the first group that has one of its
// ends, and two groups that a later key connects stay two, as in the official script.
func (s *Schema) mergeForeignKeys(described *sql.Schema) {
	place := map[string]int{}
	for _, t := range described.Tables {
		for _, c := range t.Columns {
			place[columnName(t.Name, c.Name)] = len(place)
		}
	}
	var groups []map[string]bool
	for _, k := range described.ForeignKeys {
		ends := [2]string{columnName(k.Table, k.Column), columnName(k.RefTable, k.RefColumn)}
		var group map[string]bool
		for _, g := range groups {
			if g[ends[0]] || g[ends[1]] {
				group = g
				break
			}
		}
		if group == nil {
			group = map[string]bool{}
			groups = append(groups, group)
		}
		group[ends[0]], group[ends[1]] = true, true
	}
	for _, group := range groups {
		first := ""
		for name := range group {
			if first == "" || place[name] < place[first] {
				first = name
			}
		}
		for name := range group {
			s.merged[name] = first
		}
	}
}

func columnName(table, column string) string {
	return strings.ToLower(table) + "." + strings.ToLower(column)
}

// known reports whether a name is that of a table, of a table's column, or the star.
func (s *Schema) known(name string) bool {
	if name == star || s.columns[name] != nil {
		return true
	}
	table, column, ok := strings.Cut(name, ".")
	return ok && s.columns[table][column]
}

const star = "*"
