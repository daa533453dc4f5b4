package solve

import (
	"strings"

	"caper/sql"
)

// predicate is a comparison of a base table's column with a literal, which has to hold
// for rows to come out.
type predicate struct {
	node     *sql.Node // Compare, Like or In
	column   *sql.Node
	literal  *sql.Node
	table    *sql.SchemaTable
	base     *sql.SchemaColumn
	operator string // "=", "<", ..., "LIKE"; "=" for the items of an IN list
}

// text is the literal's, without quotes.
func (p *predicate) text() string { return p.literal.Value }

// sql is the literal in SQL.
func (p *predicate) sql() string {
	if p.literal.Kind == sql.Number {
		return p.literal.Value
	}
	return quoteText(p.literal.Value)
}

// isText reports that the literal is a text.
func (p *predicate) isText() bool { return p.literal.Kind != sql.Number }

// pattern is the literal without the wildcards around it, of a LIKE.
func (p *predicate) pattern() string { return strings.Trim(p.literal.Value, "%") }

// predicates lists those of a statement.
func predicates(x *Examined) []predicate {
	var all []predicate
	sql.Walk(x.tree, func(n *sql.Node) bool {
		switch n.Kind {
		case sql.Compare:
			if n.Value == "!=" {
				break
			}
			a, b := n.Children[0], n.Children[1]
			if p, ok := newPredicate(x, n, a, b, n.Value); ok {
				all = append(all, p)
			} else if p, ok := newPredicate(x, n, b, a, turned[n.Value]); ok {
				all = append(all, p)
			}
		case sql.Like:
			if n.Value == "LIKE" && len(n.Children) == 2 {
				if p, ok := newPredicate(x, n, n.Children[0], n.Children[1], "LIKE"); ok {
					all = append(all, p)
				}
			}
		case sql.In:
			if n.Value == "IN" && n.Children[1].Kind == sql.List {
				for _, item := range n.Children[1].Children {
					if p, ok := newPredicate(x, n, n.Children[0], item, "="); ok {
						all = append(all, p)
					}
				}
			}
		}
		return !forbids(n)
	})
	return all
}

// turned are comparisons with their sides exchanged.
var turned = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// forbids reports that rows for which what is under n holds are kept out.
func forbids(n *sql.Node) bool {
	return n.Kind == sql.Not || n.Kind == sql.In && n.Value == "NOT IN" || n.Kind == sql.SetOp && n.Value == "EXCEPT"
}

func newPredicate(x *Examined, n, column, literal *sql.Node, operator string) (predicate, bool) {
	if column.Kind != sql.Column {
		return predicate{}, false
	}
	switch {
	case literal.Kind == sql.String, literal.Kind == sql.Number:
	case literal.Kind == sql.Column && x.scopes.Binding(literal).Meaning == sql.MeansString:
	default:
		return predicate{}, false
	}
	table, base, ok := baseColumn(x.scopes, column)
	return predicate{n, column, literal, table, base, operator}, ok
}
