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

// neighbourTable reads another table that a foreign key joins to this one.
func neighbourTable(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	q.changeTable(n, true, propose)
}

// otherTable reads another table that no foreign key joins to this one.
func otherTable(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	q.changeTable(n, false, propose)
}

// changeTable reads another table that has all columns which the query takes
// from this one. The rest of the query must not tell the old name, by qualifier
// or by alias.
func (q *query) changeTable(n *sql.Node, neighbours bool, propose func(old, new *sql.Node)) {
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
	count := 0
	for i := range q.schema.Tables {
		t := &q.schema.Tables[i]
		hasAll := !slices.ContainsFunc(needed, func(c string) bool { return t.Column(c) == nil })
		if sameName(t.Name, n.Value) || !hasAll || strings.HasPrefix(t.Name, "sqlite_") || q.areNeighbours(t.Name, n.Value) != neighbours {
			continue
		}
		if count++; count > maxChoices {
			return
		}
		propose(n, relabelled(n, t.Name))
	}
}

// dropJoin leaves out a joined source of which the query reads nothing outside
// its own condition.
func dropJoin(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	if n.Kind != sql.Join || n.Parent.Kind != sql.From {
		return
	}
	source := q.scopes.Source(n.Children[0])
	if source == nil {
		return
	}
	isRead := false
	sql.Walk(q.tree, func(c *sql.Node) bool {
		isRead = isRead || q.scopes.Binding(c).Source == source
		return c != n && !isRead
	})
	if !isRead {
		propose(n.Parent, without(n.Parent, n.Index()))
	}
}

// addJoin joins a table over a foreign key that leads from or to a table of the
// block. No column that the query writes without qualifier may be one of its.
func addJoin(q *query, n *sql.Node, propose func(old, new *sql.Node)) {
	scope := q.scopes.Scope(n.Parent)
	if n.Kind != sql.From || scope == nil {
		return
	}
	for _, k := range q.schema.ForeignKeys {
		for _, s := range scope.Sources {
			if s.Table == nil {
				continue
			}
			if sameName(s.Table.Name, k.Table) {
				q.joinTable(n, s, k.Column, k.RefTable, k.RefColumn, propose)
			}
			if sameName(s.Table.Name, k.RefTable) {
				q.joinTable(n, s, k.RefColumn, k.Table, k.Column, propose)
			}
		}
	}
}

// joinTable proposes FROM with table joined to a source by equal columns.
func (q *query) joinTable(from *sql.Node, s *sql.Source, own, table, other string, propose func(old, new *sql.Node)) {
	added := q.schema.Table(table)
	if added == nil || q.reads(from.Parent, added) || q.blurs(added) {
		return
	}
	source := &sql.Node{Kind: sql.Table, Value: added.Name}
	name := added.Name
	if aliased, letter := aliasHabit(q.tree); aliased {
		name = freshAlias(letter, q.sourceNames())
		source = branch(sql.Table, added.Name, &sql.Node{Kind: sql.Alias, Value: name})
	}
	equal := branch(sql.Compare, "=",
		&sql.Node{Kind: sql.Column, Qualifier: s.Name, Value: own},
		&sql.Node{Kind: sql.Column, Qualifier: name, Value: other})
	propose(from, with(from, branch(sql.Join, "JOIN", source, branch(sql.On, "", equal))))
}

// reads reports that a block has the table among its sources.
func (q *query) reads(block *sql.Node, table *sql.SchemaTable) bool {
	return slices.ContainsFunc(q.scopes.Scope(block).Sources, func(s *sql.Source) bool {
		return s.Table == table || sameName(s.Name, table.Name)
	})
}

// blurs reports that the query writes the name of one of the table's columns
// without qualifier.
func (q *query) blurs(table *sql.SchemaTable) bool {
	found := false
	sql.Walk(q.tree, func(n *sql.Node) bool {
		found = found || n.Kind == sql.Column && n.Qualifier == "" && table.Column(n.Value) != nil
		return !found
	})
	return found
}

// sourceNames holds the names of all sources of the query, in lower case.
func (q *query) sourceNames() map[string]bool {
	taken := make(map[string]bool)
	sql.Walk(q.tree, func(n *sql.Node) bool {
		if s := q.scopes.Source(n); s != nil {
			taken[strings.ToLower(s.Name)] = true
		}
		return true
	})
	return taken
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
