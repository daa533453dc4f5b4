package annotate

import (
	"context"
	"slices"

	"caper/annotate/style"
	"caper/sql"
)

// query is a statement that runs on a database, with what its names mean there.
type query struct {
	*statement
	scopes *sql.Scopes
	style  style.Style
	// patchers of its clauses, once asked for.
	patchers map[*sql.Node]*style.Patcher
	// values samples the values of a table's column.
	values func(table *sql.SchemaTable, column string) []string
}

// bind resolves the names of a statement.
func bind(ctx context.Context, s *statement, e *executor) *query {
	return &query{
		statement: s,
		scopes:    sql.Resolve(s.tree, s.schema),
		style:     style.Of(s.text),
		patchers:  make(map[*sql.Node]*style.Patcher),
		values:    func(table *sql.SchemaTable, column string) []string { return e.values(ctx, table, column) },
	}
}

// baseTable is the schema's table that a column is read from, or nil.
func (q *query) baseTable(column *sql.Node) *sql.SchemaTable {
	b := q.scopes.Binding(column)
	if b.Meaning != sql.MeansColumn || b.Source == nil || b.Column < 0 {
		return nil
	}
	return b.Source.Table
}

// siblings are the other columns of a column's table with the same class of
// values, at most maxChoices, those of the very same declared type first.
func (q *query) siblings(column *sql.Node) []string {
	table := q.baseTable(column)
	if table == nil {
		return nil
	}
	own := table.Columns[q.scopes.Binding(column).Column]
	affinity := sql.TypeAffinity(own.Type)
	var same, like []string
	for _, c := range table.Columns {
		a := sql.TypeAffinity(c.Type)
		switch {
		case sameName(c.Name, own.Name):
		case sameName(c.Type, own.Type):
			same = append(same, c.Name)
		case a == affinity || a.IsNumber() && affinity.IsNumber():
			like = append(like, c.Name)
		}
	}
	all := append(same, like...)
	return all[:min(len(all), maxChoices)]
}

// isKey reports that a column is part of a primary or foreign key.
func (q *query) isKey(table *sql.SchemaTable, column string) bool {
	if c := table.Column(column); c != nil && c.PrimaryKey {
		return true
	}
	return slices.ContainsFunc(q.schema.ForeignKeys, func(k sql.ForeignKey) bool {
		return sameName(k.Table, table.Name) && sameName(k.Column, column) ||
			sameName(k.RefTable, table.Name) && sameName(k.RefColumn, column)
	})
}

// areNeighbours reports that a foreign key joins two tables.
func (q *query) areNeighbours(a, b string) bool {
	return slices.ContainsFunc(q.schema.ForeignKeys, func(k sql.ForeignKey) bool {
		return sameName(k.Table, a) && sameName(k.RefTable, b) || sameName(k.Table, b) && sameName(k.RefTable, a)
	})
}

// columnsOf lists the columns that the query reads from a source, and tells
// whether it names the source's table before any of them.
func (q *query) columnsOf(source *sql.Source) (columns []string, named bool) {
	sql.Walk(q.tree, func(n *sql.Node) bool {
		if b := q.scopes.Binding(n); b.Source == source && b.Meaning == sql.MeansColumn {
			if n.Kind == sql.Column {
				columns = append(columns, n.Value)
			}
			named = named || sameName(n.Qualifier, source.Name)
		}
		return true
	})
	return columns, named
}

// domain samples the values of the column that a query's column is read from.
func (q *query) domain(column *sql.Node) []string {
	table := q.baseTable(column)
	if table == nil {
		return nil
	}
	return q.values(table, table.Columns[q.scopes.Binding(column).Column].Name)
}
