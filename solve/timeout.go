package solve

import (
	"fmt"
	"strings"

	"caper/sql"
)

// Queries that run out of time are mostly those that run a sub-query once for every row
// of a table without an index. The rewrites here give the same rows, as bags:
//
//   - EXISTS (SELECT ... WHERE t.k = o.k AND p) is o.k IN (SELECT t.k ... WHERE p), and
//     NOT EXISTS is o.k IS NULL OR o.k NOT IN (... AND t.k IS NOT NULL): SQLite makes
//     the list of an IN that depends on nothing outside once;
//   - o.x IN (SELECT t.y ... WHERE t.k = o.k) is (o.x, o.k) IN (SELECT t.y, t.k ...);
//   - (SELECT agg(t.v) FROM t WHERE t.k = o.k) is a column of a table grouped by t.k, joined
//     by LEFT JOIN; counts without a partner are 0;
//   - ORDER BY and DISTINCT say nothing in IN, EXISTS and sub-queries in FROM;
//   - CROSS JOIN is JOIN, which leaves SQLite the choice of the order.
//
// Where a column is declared with a collation none of it is tried, since an equality
// goes by the collation of its left side.
func rewriteSlow(x *Examined) []mend {
	r := rewriter{draft: newDraft(x), inside: map[*sql.Node]map[*sql.Source]bool{}}
	var blocks []*sql.Node // of sub-queries, innermost last
	sql.Walk(x.tree, func(n *sql.Node) bool {
		r.relax(n)
		switch n.Kind {
		case sql.Exists, sql.Subquery:
			blocks = append(blocks, n)
		}
		return n.Kind != sql.Collate
	})
	for i := len(blocks) - 1; i >= 0; i-- {
		r.decorrelate(blocks[i])
	}
	if len(r.notes) == 0 {
		return nil
	}
	return []mend{{r.text(), "rewrite", strings.Join(r.notes, "; ")}}
}

type rewriter struct {
	*draft
	notes  []string
	inside map[*sql.Node]map[*sql.Source]bool
	joined int
}

func (r *rewriter) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// relax takes away what only costs time.
func (r *rewriter) relax(n *sql.Node) {
	switch {
	case n.Kind == sql.Join && n.Value == "CROSS JOIN":
		r.at(n).Value = "JOIN"
		r.note("CROSS JOIN is JOIN")
	case n.Kind == sql.Select && isSet(n) && n.Child(sql.Limit) == nil:
		if order := n.Child(sql.OrderBy); order != nil {
			remove(r.at(order))
			r.note("ORDER BY of a sub-query left out")
		}
		if p := n.Child(sql.Projection); p.Value == "DISTINCT" && n.Parent.Kind != sql.Derived {
			r.at(p).Value = ""
			r.note("DISTINCT of a sub-query left out")
		}
	}
}

// isSet reports that nothing depends on the order of a block's rows, nor, but in FROM,
// on how often each is there.
func isSet(block *sql.Node) bool {
	switch parent := block.Parent; {
	case parent == nil:
		return false
	case parent.Kind == sql.Exists:
		return true
	case parent.Kind == sql.Subquery:
		return parent.Parent.Kind == sql.In
	case parent.Kind == sql.Derived:
		outer := parent.Block()
		return outer.Kind == sql.Select && outer.Child(sql.Limit) == nil && !mentionsOrdered(outer)
	}
	return false
}

// mentionsOrdered reports an aggregate whose value depends on the order of rows, or a
// window.
func mentionsOrdered(n *sql.Node) bool {
	found := false
	sql.Walk(n, func(c *sql.Node) bool {
		if c.Kind == sql.Over || c.Kind == sql.Aggregate && (strings.Contains(c.Value, "concat") || strings.HasPrefix(c.Value, "json")) {
			found = true
		}
		return !found
	})
	return found
}

// link is an equality between a sub-query's own expression and one of the block around
// it.
type link struct{ conjunct, inner, outer *sql.Node }

// links splits the conditions of a sub-query: those that link it to the block around
// it, and whether all others are about its own sources alone.
func (r *rewriter) links(block *sql.Node) (links []link, ok bool) {
	where := block.Child(sql.Where)
	if where == nil {
		return nil, false
	}
	for _, c := range block.Children {
		if c.Kind != sql.Where && r.reachesOut(c, block) {
			return nil, false
		}
	}
	for _, c := range conjuncts(where.Children[0]) {
		if !r.reachesOut(c, block) {
			continue
		}
		if c.Kind != sql.Compare || c.Value != "=" {
			return nil, false
		}
		a, b := c.Children[0], c.Children[1]
		switch {
		case r.isOwn(a, block) && r.isOuter(b, block):
			links = append(links, link{c, a, b})
		case r.isOwn(b, block) && r.isOuter(a, block):
			links = append(links, link{c, b, a})
		default:
			return nil, false
		}
	}
	return links, len(links) > 0
}

// sources are those of a block and of the blocks in it.
func (r *rewriter) sources(block *sql.Node) map[*sql.Source]bool {
	if known := r.inside[block]; known != nil {
		return known
	}
	own := map[*sql.Source]bool{}
	sql.Walk(block, func(n *sql.Node) bool {
		if scope := r.scopes.Scope(n); scope != nil {
			for _, s := range scope.Sources {
				own[s] = true
			}
		}
		return true
	})
	r.inside[block] = own
	return own
}

// reachesOut reports that something under n names a source outside the block, or
// cannot be told.
func (r *rewriter) reachesOut(n, block *sql.Node) bool {
	own, out := r.sources(block), false
	sql.Walk(n, func(c *sql.Node) bool {
		if c.Kind == sql.Column || c.Kind == sql.Star && c.Qualifier != "" {
			switch b := r.scopes.Binding(c); b.Meaning {
			case sql.MeansColumn:
				out = out || !own[b.Source]
			case sql.MeansNothing, sql.MeansOutput:
				out = true
			}
		}
		return !out
	})
	return out
}

// isOwn reports that n is a column of the block's own sources.
func (r *rewriter) isOwn(n, block *sql.Node) bool {
	return n.Kind == sql.Column && !r.reachesOut(n, block) && r.scopes.Binding(n).Meaning == sql.MeansColumn && r.scopes.Binding(n).Level == 0
}

// isOuter reports that n is a column of the block right around.
func (r *rewriter) isOuter(n, block *sql.Node) bool {
	if n.Kind != sql.Column {
		return false
	}
	b := r.scopes.Binding(n)
	return b.Meaning == sql.MeansColumn && b.Level == 1 && !b.Ambiguous && !b.Coalesced && !r.sources(block)[b.Source]
}

// isPlain reports that a block is a SELECT without anything that looks at its rows
// together.
func isPlain(block *sql.Node) bool {
	if block.Kind != sql.Select || block.Child(sql.From) == nil {
		return false
	}
	for _, kind := range []sql.Kind{sql.With, sql.GroupBy, sql.Having, sql.Window, sql.Limit} {
		if block.Child(kind) != nil {
			return false
		}
	}
	return true
}

// decorrelate makes a sub-query independent of the block around it, if it can.
func (r *rewriter) decorrelate(n *sql.Node) {
	block := n.Children[0]
	if !isPlain(block) {
		return
	}
	links, ok := r.links(block)
	if !ok {
		return
	}
	switch {
	case aggregateIn(block.Child(sql.Projection)) != nil:
		if n.Kind == sql.Subquery && n.Parent.Kind != sql.In {
			r.group(n, links)
		}
	case mentionsOrdered(block.Child(sql.Projection)):
	case n.Kind == sql.Exists:
		r.listExists(n, links)
	case n.Parent.Kind == sql.In && n.Parent.Value == "IN" && isFilter(n.Parent) && n.Parent.Children[0].Kind != sql.Row:
		r.listIn(n.Parent, links)
	}
}

// isFilter reports that n decides on rows as a condition that is true or not: NULL is as
// good as false.
func isFilter(n *sql.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		switch p.Kind {
		case sql.And, sql.Or:
		case sql.Where, sql.Having:
			return true
		default:
			return false
		}
	}
	return false
}

// cut takes the links out of the copy of a block.
func (r *rewriter) cut(block *sql.Node, links []link) {
	where := block.Child(sql.Where)
	if len(links) == len(conjuncts(where.Children[0])) {
		remove(r.at(where))
		return
	}
	kept := []*sql.Node{}
	for _, c := range conjuncts(where.Children[0]) {
		linked := false
		for _, l := range links {
			linked = linked || l.conjunct == c
		}
		if !linked {
			kept = append(kept, r.at(c))
		}
	}
	condition := kept[0]
	for _, c := range kept[1:] {
		condition = both(condition, c)
	}
	w := r.at(where)
	w.Children = []*sql.Node{condition}
	condition.Parent = w
}

// listExists turns EXISTS into IN.
func (r *rewriter) listExists(n *sql.Node, links []link) {
	negated := n.Parent.Kind == sql.Not
	top := n
	if negated {
		top = n.Parent
	}
	if !isFilter(top) || negated && len(links) > 1 {
		return
	}
	block := n.Children[0]
	r.cut(block, links)
	var items, outers []*sql.Node
	for _, l := range links {
		items = append(items, node(sql.Item, "", r.at(l.inner).Clone()))
		outers = append(outers, r.at(l.outer).Clone())
	}
	copied := r.at(block)
	project(copied, items)
	left := outers[0]
	if len(outers) > 1 {
		left = node(sql.Row, "", outers...)
	}
	list := node(sql.Subquery, "", copied)
	if !negated {
		become(r.at(top), node(sql.In, "IN", left, list))
		r.note("EXISTS is IN")
		return
	}
	require(copied, node(sql.NullTest, "IS NOT NULL", r.at(links[0].inner).Clone()))
	become(r.at(top), node(sql.Or, "", node(sql.NullTest, "IS NULL", left.Clone()), node(sql.In, "NOT IN", left, list)))
	r.note("NOT EXISTS is NOT IN")
}

// project replaces what a block selects.
func project(block *sql.Node, items []*sql.Node) {
	p := block.Child(sql.Projection)
	p.Value, p.Children = "", nil
	for _, item := range items {
		item.Parent = p
		p.Children = append(p.Children, item)
	}
	if order := block.Child(sql.OrderBy); order != nil {
		remove(order)
	}
}

// listIn takes the links of an IN into its list.
func (r *rewriter) listIn(in *sql.Node, links []link) {
	block := in.Children[1].Children[0]
	own := onlyItem(block)
	if own == nil || own.Kind == sql.Star {
		return
	}
	r.cut(block, links)
	copied := r.at(block)
	items := []*sql.Node{node(sql.Item, "", r.at(own).Clone())}
	left := []*sql.Node{r.at(in.Children[0])}
	for _, l := range links {
		items = append(items, node(sql.Item, "", r.at(l.inner).Clone()))
		left = append(left, r.at(l.outer).Clone())
	}
	project(copied, items)
	become(r.at(in), node(sql.In, "IN", node(sql.Row, "", left...), node(sql.Subquery, "", copied)))
	r.note("the list of IN depends on nothing outside")
}

// group joins a scalar sub-query's aggregate, grouped by what links it.
func (r *rewriter) group(n *sql.Node, links []link) {
	block := n.Children[0]
	aggregate := onlyItem(block)
	outer := n.Parent.Block()
	clause := n.Clause()
	if aggregate == nil || aggregate.Kind != sql.Aggregate || outer.Kind != sql.Select || outer.Child(sql.From) == nil || !r.mayJoin(outer, clause) ||
		!r.alike(links) {
		return
	}
	empty, known := emptyValue[aggregate.Value]
	if !known {
		return
	}
	r.cut(block, links)
	r.joined++
	name := fmt.Sprintf("grouped_%d", r.joined)
	copied := r.at(block)
	var items []*sql.Node
	keys := node(sql.GroupBy, "")
	on := node(sql.On, "")
	var condition *sql.Node
	for i, l := range links {
		key := fmt.Sprintf("key_%d", i+1)
		items = append(items, node(sql.Item, "", r.at(l.inner).Clone(), node(sql.Alias, key)))
		k := r.at(l.inner).Clone()
		k.Parent = keys
		keys.Children = append(keys.Children, k)
		equal := node(sql.Compare, "=", column(name, key), r.at(l.outer).Clone())
		if condition == nil {
			condition = equal
		} else {
			condition = both(condition, equal)
		}
	}
	condition.Parent = on
	on.Children = []*sql.Node{condition}
	items = append(items, node(sql.Item, "", r.at(aggregate).Clone(), node(sql.Alias, "value")))
	project(copied, items)
	adopt(copied, keys, sql.Having, sql.Window, sql.OrderBy, sql.Limit)
	join := node(sql.Join, "LEFT JOIN", node(sql.Derived, "", copied, node(sql.Alias, name)), on)
	from := r.at(outer).Child(sql.From)
	join.Parent = from
	from.Children = append(from.Children, join)
	value := column(name, "value")
	if empty == "" { // the sign takes the column's affinity away, which an aggregate has none of
		become(r.at(n), node(sql.Unary, "+", value))
	} else {
		become(r.at(n), node(sql.Function, "coalesce", value, &sql.Node{Kind: sql.Number, Value: empty}))
	}
	r.note("a sub-query for each row is a grouped join")
}

// emptyValue is what aggregates make of no rows; "" is NULL.
var emptyValue = map[string]string{"count": "0", "total": "0.0", "sum": "", "avg": "", "min": "", "max": ""}

// mayJoin reports that a block's rows, and what it says of them, stay the same when a
// table is joined that has one row for each, at most.
func (r *rewriter) mayJoin(outer *sql.Node, clause *sql.Node) bool {
	grouped := outer.Child(sql.GroupBy) != nil || aggregateIn(outer.Child(sql.Projection)) != nil || outer.Child(sql.Having) != nil
	for _, item := range outer.Child(sql.Projection).Children {
		if expr := item.Children[0]; expr.Kind == sql.Star && expr.Qualifier == "" {
			return false
		}
	}
	for _, c := range outer.Child(sql.From).Children {
		if c.Kind == sql.Join && (strings.HasPrefix(c.Value, "NATURAL") || c.Child(sql.Using) != nil) {
			return false
		}
	}
	switch clause.Kind {
	case sql.Where:
		return clause.Parent == outer
	case sql.Projection, sql.OrderBy:
		return clause.Parent == outer && !grouped
	}
	return false
}

// alike reports that both sides of every link compare as values of one kind, so that
// groups of one side's values are groups for the other.
func (r *rewriter) alike(links []link) bool {
	for _, l := range links {
		a, b := r.scopes.Affinity(l.inner), r.scopes.Affinity(l.outer)
		if a != b && !(a.IsNumber() && b.IsNumber()) {
			return false
		}
	}
	return true
}

// addKeys joins tables without a condition by the foreign key that connects them. The
// result is another, and what was meant: no question is about every pair of rows.
func addKeys(x *Examined, schema *sql.Schema) []mend {
	s := screening{Examined: x, schema: schema}
	d := newDraft(x)
	var notes []string
	sql.Walk(x.tree, func(n *sql.Node) bool {
		if n.Kind == sql.Join && n.Child(sql.On) == nil && n.Child(sql.Using) == nil && !strings.HasPrefix(n.Value, "NATURAL") {
			if pair, ok := s.missingKey(n); ok {
				require(d.at(n.Block()), pair.condition())
				notes = append(notes, "joined by "+pair.String())
			}
		}
		return true
	})
	if len(notes) == 0 {
		return nil
	}
	return []mend{{d.text(), "join-condition", strings.Join(notes, "; ")}}
}

// joinPair is an equality of two columns.
type joinPair struct{ left, leftColumn, right, rightColumn string }

func (p joinPair) String() string {
	return p.left + "." + p.leftColumn + " = " + p.right + "." + p.rightColumn
}

func (p joinPair) condition() *sql.Node {
	return node(sql.Compare, "=", column(p.left, p.leftColumn), column(p.right, p.rightColumn))
}
