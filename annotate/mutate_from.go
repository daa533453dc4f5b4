package annotate

import (
	"regexp"
	"slices"
	"strings"

	"caper/sql"
)

// maxChoices bounds the values tried for one name and the parts tried of one
// list: a wide table or a long list must not drown the other operators.
const maxChoices = 8

// changeJoinKey puts another column of like type on one side of a join
// condition, primary and foreign keys where the table has them.
func changeJoinKey(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Column || !isUnder(n, sql.On) {
		return
	}
	source, siblings := q.baseTable(n), q.siblings(n)
	keys := slices.DeleteFunc(slices.Clone(siblings), func(name string) bool { return !q.isKey(source, name) })
	if len(keys) > 0 {
		siblings = keys
	}
	for _, sibling := range siblings {
		propose(n, relabelled(n, sibling))
	}
}

// changeJoinKind exchanges inner and left joins.
func changeJoinKind(_ *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Join || n.Child(sql.On) == nil && n.Child(sql.Using) == nil {
		return
	}
	switch n.Value {
	case "JOIN":
		propose(n, relabelled(n, "LEFT JOIN"))
	case "LEFT JOIN":
		propose(n, relabelled(n, "JOIN"))
	}
}

// neutralAlias matches aliases that do not hint at their table's name.
var neutralAlias = regexp.MustCompile(`^(?i)t\d*$`)

// changeTable reads another table that has all columns which the query takes
// from this one: the neighbours by foreign key if any qualify, else any table.
// The rest of the query must not tell the old name, by qualifier or by alias.
func changeTable(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	source := q.scopes.Source(n)
	if source == nil || source.Table == nil || n.Parent.Kind == sql.In {
		return
	}
	alias := n.Child(sql.Alias)
	if alias != nil && !neutralAlias.MatchString(alias.Value) {
		return
	}
	needed, named := q.columnsOf(source)
	if alias == nil && named {
		return
	}
	var neighbours, others []string
	for i := range q.schema.Tables {
		t := &q.schema.Tables[i]
		hasAll := !slices.ContainsFunc(needed, func(c string) bool { return t.Column(c) == nil })
		switch {
		case sameName(t.Name, n.Value) || !hasAll || strings.HasPrefix(t.Name, "sqlite_"):
		case q.areNeighbours(t.Name, n.Value):
			neighbours = append(neighbours, t.Name)
		default:
			others = append(others, t.Name)
		}
	}
	if len(neighbours) == 0 {
		neighbours = others
	}
	for _, name := range neighbours[:min(len(neighbours), maxChoices)] {
		propose(n, relabelled(n, name))
	}
}

// isUnder reports that n lies below a node of the kind, in the same block.
func isUnder(n *sql.Node, kind sql.Kind) bool {
	for p := n.Parent; p != nil && !p.IsBlock(); p = p.Parent {
		if p.Kind == kind {
			return true
		}
	}
	return false
}

// sameName compares names as SQLite does.
func sameName(a, b string) bool { return strings.EqualFold(a, b) }
