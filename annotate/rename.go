package annotate

import (
	"fmt"
	"strings"

	"caper/sql"
)

// renameLike copies gold with its sources named as the prediction names them:
// its aliases, or the bare table name where it uses none (caper.md 1.4.4, step
// 3). Blocks that stand at the same place in both are named alike.
func renameLike(gold, wrong *sql.Node) *sql.Node {
	c := gold.Clone()
	renameBlock(c, wrong)
	return c
}

// renameBlock names the sources of g like those of w, then those of the blocks
// in the same clauses.
func renameBlock(g, w *sql.Node) {
	if g.Kind == sql.Compound || w.Kind == sql.Compound {
		renameCompound(g, w)
		return
	}
	if g.Kind == sql.Select && w.Kind == sql.Select {
		renameSources(g, w)
	}
	for _, clause := range g.Children {
		other := w.Child(clause.Kind)
		if other == nil {
			continue
		}
		theirs := innerBlocks(other)
		for i, b := range innerBlocks(clause) {
			if i < len(theirs) {
				renameBlock(b, theirs[i])
			}
		}
	}
}

// renameCompound pairs the operands of set operations in order.
func renameCompound(g, w *sql.Node) {
	theirs := operands(w)
	for i, b := range operands(g) {
		if i < len(theirs) {
			renameBlock(b, theirs[i])
		}
	}
}

// operands are the blocks that a set operation joins, or the block itself.
func operands(n *sql.Node) []*sql.Node {
	if n.Kind != sql.Compound {
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

// naming is the name that a source gets and whether it is an alias.
type naming struct {
	name  string
	alias bool
}

// renameSources names the sources of block g like those of w over the same
// tables. Tables that w lacks keep their name unless it is taken, and are
// numbered on where w numbers its aliases.
func renameSources(g, w *sql.Node) {
	ours, theirs := tableSources(g), tableSources(w)
	names := matchNames(ours, theirs)
	rename := make(map[string]naming)
	for i, source := range ours {
		old := aliasOf(source)
		if old == "" {
			old = source.Value
		}
		rename[strings.ToLower(old)] = names[i]
		setAlias(source, names[i])
	}
	qualify := qualifierStyle(w)
	if len(ours) != 1 {
		qualify = keepQualifiers
	}
	renameColumns(g, g, rename, qualify)
}

// matchNames chooses the name of each of our sources.
func matchNames(ours, theirs []*sql.Node) []naming {
	names := make([]naming, len(ours))
	taken := make(map[string]bool)
	used := make([]bool, len(theirs))
	aliased, numbered := false, 0
	for _, t := range theirs {
		alias := aliasOf(t)
		aliased = aliased || alias != ""
		if neutralAlias.MatchString(alias) {
			numbered++
		}
		taken[strings.ToLower(alias)] = true
	}
	for i, o := range ours {
		for j, t := range theirs {
			if !used[j] && o.Kind == t.Kind && sameName(o.Value, t.Value) {
				used[j] = true
				names[i] = naming{t.Value, false}
				if alias := aliasOf(t); alias != "" {
					names[i] = naming{alias, true}
				}
				taken[strings.ToLower(names[i].name)] = true
				break
			}
		}
	}
	for i, o := range ours {
		if names[i].name != "" {
			continue
		}
		n := naming{aliasOf(o), true}
		bare := o.Kind == sql.Table && !aliased && !taken[strings.ToLower(o.Value)]
		switch {
		case bare:
			n = naming{o.Value, false}
		case numbered > 0 && neutralAlias.MatchString(n.name) || n.name != "" && taken[strings.ToLower(n.name)]:
			n.name = freshAlias(theirs, taken)
		case n.name == "":
			n = naming{o.Value, false}
		}
		names[i] = n
		taken[strings.ToLower(n.name)] = true
	}
	return names
}

// freshAlias is the first free T1, T2, ..., in the case the prediction uses.
func freshAlias(theirs []*sql.Node, taken map[string]bool) string {
	letter := "T"
	for _, t := range theirs {
		if strings.HasPrefix(aliasOf(t), "t") {
			letter = "t"
		}
	}
	for i := 1; ; i++ {
		if name := fmt.Sprint(letter, i); !taken[strings.ToLower(name)] {
			return name
		}
	}
}

// setAlias gives a source its alias or takes it away.
func setAlias(source *sql.Node, n naming) {
	last := len(source.Children) - 1
	alias := source.Child(sql.Alias)
	switch {
	case alias != nil && n.alias:
		alias.Value = n.name
	case alias != nil && source.Kind == sql.Table:
		source.Children = source.Children[:last]
	case alias == nil && n.alias:
		source.Children = append(source.Children, &sql.Node{Kind: sql.Alias, Value: n.name, Parent: source})
	}
}

// qualification says what becomes of the qualifiers of a block over one source.
type qualification int

const (
	keepQualifiers qualification = iota
	addQualifiers
	dropQualifiers
)

// qualifierStyle tells whether a block qualifies its columns: all, none or some.
func qualifierStyle(block *sql.Node) qualification {
	bare, qualified := 0, 0
	sql.Walk(block, func(n *sql.Node) bool {
		switch {
		case n != block && n.IsBlock():
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
		return dropQualifiers
	case bare == 0 && qualified > 0:
		return addQualifiers
	}
	return keepQualifiers
}

// renameColumns replaces the qualifiers under n, which belongs to block. Inner
// blocks see the names too unless a source of theirs has the same one.
func renameColumns(n, block *sql.Node, rename map[string]naming, qualify qualification) {
	for _, c := range n.Children {
		if c.IsBlock() {
			renameColumns(c, c, hide(rename, c), keepQualifiers)
			continue
		}
		if c.Kind == sql.Column || c.Kind == sql.Star {
			renameColumn(c, rename, qualify)
		}
		renameColumns(c, block, rename, qualify)
	}
}

func renameColumn(c *sql.Node, rename map[string]naming, qualify qualification) {
	to, known := rename[strings.ToLower(c.Qualifier)]
	switch {
	case c.Qualifier == "" && qualify == addQualifiers && c.Kind == sql.Column && !c.DoubleQuoted && !isOutputName(c):
		for _, only := range rename {
			c.Qualifier = only.name
		}
	case c.Qualifier != "" && known && qualify == dropQualifiers:
		c.Qualifier = ""
	case c.Qualifier != "" && known:
		c.Qualifier = to.name
	}
}

// isOutputName reports that a bare column is named as an alias of its block's
// projection.
func isOutputName(c *sql.Node) bool {
	block := c.Block()
	if block == nil || block.Child(sql.Projection) == nil {
		return false
	}
	for _, item := range block.Child(sql.Projection).Children {
		if a := item.Child(sql.Alias); a != nil && sameName(a.Value, c.Value) {
			return true
		}
	}
	return false
}

// hide leaves out the names that sources of the block take over.
func hide(rename map[string]naming, block *sql.Node) map[string]naming {
	visible := make(map[string]naming, len(rename))
	for name, n := range rename {
		visible[name] = n
	}
	for _, o := range operands(block) {
		for _, source := range tableSources(o) {
			name := aliasOf(source)
			if name == "" {
				name = source.Value
			}
			delete(visible, strings.ToLower(name))
		}
	}
	return visible
}
