package fill

import (
	"strconv"
	"strings"

	"caper/sql"
)

// query is one gold query, parsed and resolved against the database's schema.
type query struct {
	text   string
	tree   *sql.Node
	scopes *sql.Scopes
	tables []*table
}

// parse returns nil for what is no single SELECT statement.
func parse(text string, schema *sql.Schema, tables []*table) *query {
	tree, err := sql.Parse(text)
	if err != nil {
		return nil
	}
	return &query{text, tree, sql.Resolve(tree, schema), tables}
}

// column is the stored column that a name stands for, through sub-queries and
// common tables that pass it on; nil where there is none.
func (q *query) column(n *sql.Node) *column {
	for range maxChain {
		b := q.scopes.Binding(n)
		switch {
		case n.Kind != sql.Column || b.Meaning == sql.MeansNothing || b.Meaning == sql.MeansString:
			return nil
		case b.Meaning == sql.MeansOutput:
			n = b.Expr
			continue
		}
		source, i := b.Source, b.Column
		for source.Table == nil {
			if i < 0 || i >= len(source.Columns) {
				return nil
			}
			output := source.Columns[i]
			if output.Expr != nil {
				n = output.Expr
				break
			}
			if output.Source == nil {
				return nil
			}
			source, i = output.Source, output.Column
		}
		if source.Table == nil {
			continue
		}
		return q.stored(source, i)
	}
	return nil
}

// maxChain bounds how far a name is followed; a recursive common table could
// lead in circles.
const maxChain = 32

// stored is column i of a source that is a base table. Views have none.
func (q *query) stored(source *sql.Source, i int) *column {
	t := tableNamed(q.tables, source.Table.Name)
	if t == nil || i < 0 {
		return nil
	}
	if i = t.index(source.Table.Columns[i].Name); i < 0 {
		return nil
	}
	return t.columns[i]
}

// inner is the one stored column that an expression computes with, as in
// lower(name), max(age) or cast(year AS int); nil for a count, and where there
// are several.
func (q *query) inner(n *sql.Node) (found *column) {
	several := false
	sql.Walk(n, func(n *sql.Node) bool {
		switch {
		case n.IsBlock(), n.Kind == sql.Aggregate && n.Value == "count":
			several = several || n.IsBlock()
			return false
		case n.Kind == sql.Column:
			if c := q.column(n); c != nil {
				several = several || found != nil && found != c
				found = c
			}
		}
		return true
	})
	if several {
		return nil
	}
	return found
}

// literal is the value of a constant expression. A text in double quotes that
// names no column is one.
func (q *query) literal(n *sql.Node) (value any, ok bool) {
	switch n.Kind {
	case sql.Number:
		return number(n.Value), true
	case sql.String:
		return n.Value, true
	case sql.Column:
		if q.scopes.Binding(n).Meaning == sql.MeansString {
			return n.Value, true
		}
	case sql.Constant:
		switch n.Value {
		case "TRUE":
			return int64(1), true
		case "FALSE":
			return int64(0), true
		}
	case sql.Unary:
		if value, ok := q.literal(n.Children[0]); ok && n.Value == "-" {
			switch v := value.(type) {
			case int64:
				return -v, true
			case float64:
				return -v, true
			}
		}
	}
	return nil, false
}

// number reads a numeric literal or text, nil if it is none.
func number(text string) any {
	text = strings.TrimSpace(text)
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if strings.Trim(text, "+-.0123456789eE") != "" {
		return nil // SQLite knows no Inf, NaN or 0x1p2
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return nil
}

// outputs are the projected expressions of a block's first operand, without
// stars.
func outputs(block *sql.Node) (exprs []*sql.Node) {
	for block.Kind == sql.Compound {
		i := 0
		for !block.Children[i].IsBlock() {
			i++
		}
		block = block.Children[i]
	}
	if projection := block.Child(sql.Projection); projection != nil {
		for _, item := range projection.Children {
			exprs = append(exprs, item.Children[0])
		}
	}
	return exprs
}
