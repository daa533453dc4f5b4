package annotate

import (
	"fmt"
	"strings"

	"caper/sql"
)

// renameLike copies gold with its sources named as the wrong query names them:
// by its aliases, or by the bare table name where it uses none (caper.md 1.4.4,
// step 3). Blocks that stand at the same place in both are named alike; blocks
// without counterpart follow the wrong query's general habit.
func renameLike(gold, wrong *statement) *sql.Node {
	tree := gold.tree.Clone()
	r := renamer{
		scopes:  sql.Resolve(tree, gold.schema),
		wrong:   wrong.tree,
		names:   make(map[*sql.Node]naming),
		qualify: make(map[*sql.Node]qualification),
	}
	r.block(tree, wrong.tree)
	sql.Walk(tree, func(n *sql.Node) bool {
		if n.Kind == sql.Column || n.Kind == sql.Star && n.Qualifier != "" {
			r.column(n)
		}
		return true
	})
	for source, name := range r.names {
		setAlias(source, name)
	}
	return tree
}

// renamer decides the names of gold's sources before any is changed.
type renamer struct {
	scopes  *sql.Scopes
	wrong   *sql.Node
	names   map[*sql.Node]naming
	qualify map[*sql.Node]qualification
}

// naming is the name that a source gets and whether it is an alias.
type naming struct {
	name  string
	alias bool
}

// block names the sources of g, gold's counterpart of w, which may be nil, then
// those of the blocks inside.
func (r *renamer) block(g, w *sql.Node) {
	if g.Kind == sql.Compound || w != nil && w.Kind == sql.Compound {
		theirs := operands(w)
		for i, b := range operands(g) {
			r.block(b, at(theirs, i))
		}
		if g.Kind != sql.Compound {
			return
		}
	}
	if g.Kind == sql.Select {
		r.sources(g, w)
	}
	for _, clause := range g.Children {
		if clause.Kind == sql.SetOp || clause.IsBlock() {
			continue // operands, done
		}
		var theirs []*sql.Node
		if w != nil && w.Child(clause.Kind) != nil {
			theirs = innerBlocks(w.Child(clause.Kind))
		}
		for i, b := range innerBlocks(clause) {
			r.block(b, at(theirs, i))
		}
	}
}

// at is the i-th node, nil where the list is shorter.
func at(nodes []*sql.Node, i int) *sql.Node {
	if i < len(nodes) {
		return nodes[i]
	}
	return nil
}

// operands are the blocks that a set operation joins, or the block itself.
func operands(n *sql.Node) []*sql.Node {
	if n == nil || n.Kind != sql.Compound {
		return []*sql.Node{n}
	}
	var list []*sql.Node
	for _, c := range n.Children {
		switch {
		case c.IsBlock():
			list = append(list, c)
		case c.Kind == sql.SetOp:
			list = append(list, c.Children[0])
		}
	}
	return list
}

// innerBlocks lists the blocks directly below n.
func innerBlocks(n *sql.Node) []*sql.Node {
	var list []*sql.Node
	sql.Walk(n, func(c *sql.Node) bool {
		if c != n && c.IsBlock() {
			list = append(list, c)
			return false
		}
		return true
	})
	return list
}

// tableSources lists the tables and sub-queries of a block's FROM clause.
func tableSources(block *sql.Node) []*sql.Node {
	var list []*sql.Node
	sql.Walk(block.Child(sql.From), func(n *sql.Node) bool {
		switch n.Kind {
		case sql.Table, sql.Derived, sql.TableFunction:
			list = append(list, n)
			return false
		case sql.On, sql.Using:
			return false
		}
		return true
	})
	return list
}

// aliasOf is a source's alias, "" for none.
func aliasOf(source *sql.Node) string {
	if a := source.Child(sql.Alias); a != nil {
		return a.Value
	}
	return ""
}

// sources names the sources of block g like those of w over the same tables. A
// table that w lacks gets its own name where the wrong query uses no aliases,
// else keeps its alias unless that is taken or w numbers its aliases. A
// correlated block without counterpart keeps its names.
func (r *renamer) sources(g, w *sql.Node) {
	habit := w
	if w == nil {
		if r.isCorrelated(g) {
			return
		}
		habit = r.wrong
	}
	r.qualify[g] = qualificationOf(habit, w == nil)
	ours := tableSources(g)
	var theirs []*sql.Node
	if w != nil {
		theirs = tableSources(w)
	}
	taken := r.match(ours, theirs)
	r.takeOver(ours, theirs)
	aliased, numbered := aliasHabit(habit)
	for _, o := range ours {
		if _, done := r.names[o]; done {
			continue
		}
		n := naming{aliasOf(o), true}
		switch {
		case o.Kind == sql.Table && !aliased && !taken[strings.ToLower(o.Value)]:
			n = naming{o.Value, false}
		case numbered != "" && neutralAlias.MatchString(n.name), n.name != "" && taken[strings.ToLower(n.name)]:
			n.name = freshAlias(numbered, taken)
		case n.name == "":
			n = naming{o.Value, false}
		}
		r.names[o] = n
		taken[strings.ToLower(n.name)] = true
	}
}

// match gives each of our sources the name of the first source of theirs over
// the same table that is left, and returns the names in use.
func (r *renamer) match(ours, theirs []*sql.Node) (taken map[string]bool) {
	taken = make(map[string]bool)
	used := make([]bool, len(theirs))
	for _, t := range theirs {
		taken[strings.ToLower(aliasOf(t))] = true
	}
	for _, o := range ours {
		for j, t := range theirs {
			if used[j] || o.Kind != t.Kind || !sameName(o.Value, t.Value) {
				continue
			}
			used[j] = true
			n := naming{t.Value, false}
			if alias := aliasOf(t); alias != "" {
				n = naming{alias, true}
			}
			r.names[o] = n
			taken[strings.ToLower(n.name)] = true
			break
		}
	}
	return taken
}

// takeOver gives our sources that have no counterpart the aliases of those of
// theirs that have none, in order: where a query reads the wrong table under an
// alias, the right table under that alias mends it.
func (r *renamer) takeOver(ours, theirs []*sql.Node) {
	used := make(map[string]bool)
	for _, o := range ours {
		if n, done := r.names[o]; done {
			used[strings.ToLower(n.name)] = true
		}
	}
	for _, o := range ours {
		if _, done := r.names[o]; done {
			continue
		}
		for _, t := range theirs {
			if alias := aliasOf(t); alias != "" && !used[strings.ToLower(alias)] && o.Kind == t.Kind {
				r.names[o] = naming{alias, true}
				used[strings.ToLower(alias)] = true
				break
			}
		}
	}
}

// isCorrelated reports that the block reads columns of a block around it.
func (r *renamer) isCorrelated(block *sql.Node) bool {
	found := false
	sql.Walk(block, func(n *sql.Node) bool {
		found = found || n.Kind == sql.Column && r.scopes.Binding(n).Level > 0
		return !found
	})
	return found
}

// aliasHabit tells whether a query gives its tables aliases, and the letter that
// it numbers them with, "" if it does not.
func aliasHabit(tree *sql.Node) (aliased bool, letter string) {
	sql.Walk(tree, func(n *sql.Node) bool {
		if n.Kind == sql.Table && aliasOf(n) != "" {
			aliased = true
			if neutralAlias.MatchString(aliasOf(n)) {
				letter = aliasOf(n)[:1]
			}
		}
		return true
	})
	return aliased, letter
}

// freshAlias is the first free of T1, T2, ...
func freshAlias(letter string, taken map[string]bool) string {
	if letter == "" {
		letter = "T"
	}
	for i := 1; ; i++ {
		if name := fmt.Sprint(letter, i); !taken[strings.ToLower(name)] {
			return name
		}
	}
}

// setAlias gives a source its alias or takes it away.
func setAlias(source *sql.Node, n naming) {
	alias := source.Child(sql.Alias)
	switch {
	case alias != nil && n.alias:
		alias.Value = n.name
	case alias != nil && source.Kind == sql.Table:
		source.Children = source.Children[:len(source.Children)-1]
	case alias == nil && n.alias && n.name != "":
		source.Children = append(source.Children, &sql.Node{Kind: sql.Alias, Value: n.name, Parent: source})
	}
}

// qualification says how a block writes its columns.
type qualification int

const (
	mixedQualifiers qualification = iota
	allQualified
	noneQualified
)

// qualificationOf tells whether all, none or some of the columns of a block are
// qualified, with deep also those of the blocks inside.
func qualificationOf(block *sql.Node, deep bool) qualification {
	bare, qualified := 0, 0
	sql.Walk(block, func(n *sql.Node) bool {
		switch {
		case n != block && n.IsBlock() && !deep:
			return false
		case n.Kind == sql.Column && n.Qualifier == "" && !n.DoubleQuoted:
			bare++
		case n.Kind == sql.Column && n.Qualifier != "":
			qualified++
		}
		return true
	})
	switch {
	case qualified == 0 && bare > 0:
		return noneQualified
	case bare == 0 && qualified > 0:
		return allQualified
	}
	return mixedQualifiers
}

// column gives a column the new name of its source as qualifier; in a block that
// qualifies none of its columns, none where it is unambiguous without; in a
// block that qualifies all, always.
func (r *renamer) column(c *sql.Node) {
	b := r.scopes.Binding(c)
	if b.Meaning == sql.MeansString { // the style decides the quotes
		c.Kind, c.DoubleQuoted = sql.String, false
		return
	}
	if b.Meaning != sql.MeansColumn || b.Source == nil {
		return
	}
	name, known := r.names[b.Source.Node]
	habit := r.qualify[c.Block()]
	switch {
	case c.Kind == sql.Column && c.Qualifier != "" && habit == noneQualified && r.isUnambiguous(c, b):
		c.Qualifier = ""
	case c.Qualifier != "" && known:
		c.Qualifier = name.name
	case c.Qualifier == "" && known && habit == allQualified:
		c.Qualifier = name.name
	}
}

// isUnambiguous reports that a bare column would be bound to the same source.
func (r *renamer) isUnambiguous(c *sql.Node, b sql.Binding) bool {
	scope := r.scopes.Scope(c.Block())
	for level := 0; scope != nil && level <= b.Level; level++ {
		for _, s := range scope.Sources {
			if s != b.Source && (s.Open || s.Find(c.Value) >= 0) {
				return false
			}
		}
		scope = scope.Outer
	}
	return true
}
