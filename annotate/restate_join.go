package annotate

import (
	"math/bits"
	"slices"

	"caper/sql"
)

// joinsAsConditions moves the tables that the wrong query's FROM lacks out of
// gold's: their columns give way to equal columns of tables that stay, and the
// conditions on them become sub-queries, "WHERE key IN (SELECT key FROM table WHERE
// condition)". A table that only extends a chain of keys is left out. It returns
// nil where nothing can be moved: outer joins, or a column that no other equals.
//
// Where a join multiplied rows the result is another one; the caller notices.
func joinsAsConditions(gold, wrong *statement) *sql.Node {
	tree := gold.tree.Clone()
	block, theirs := outermostSelect(tree), outermostSelect(wrong.tree)
	if block == nil || theirs == nil || theirs.Child(sql.From) == nil {
		return nil
	}
	m := newMover(block, theirs, sql.Resolve(tree, gold.schema))
	if m == nil || !m.substitute() || !m.rewrite() {
		return nil
	}
	return tree
}

// mover rewrites one block. Sets of its sources are bit masks, source i bit i.
type mover struct {
	block   *sql.Node
	scopes  *sql.Scopes
	sources []*sql.Node
	moved   uint64
	joins   []*sql.Node // conjuncts of the joins
	where   []*sql.Node // conjuncts of WHERE
}

const maxSources = 64

// newMover reads a block of inner joins, nil where it is none or no source moves.
func newMover(block, theirs *sql.Node, scopes *sql.Scopes) *mover {
	m := &mover{block: block, scopes: scopes, where: conjuncts(block.Child(sql.Where))}
	from := block.Child(sql.From)
	if from == nil || len(from.Children) > maxSources {
		return nil
	}
	left := tableSources(theirs)
	for i, n := range from.Children {
		source := n
		if n.Kind == sql.Join {
			isInner := n.Value == "," || n.Value == "JOIN" || n.Value == "CROSS JOIN"
			if !isInner || n.Child(sql.Using) != nil {
				return nil
			}
			source = n.Children[0]
			if on := n.Child(sql.On); on != nil {
				m.joins = append(m.joins, conjuncts(on)...)
			}
		}
		if source.Kind == sql.JoinGroup {
			return nil
		}
		m.sources = append(m.sources, source)
		same := slices.IndexFunc(left, func(t *sql.Node) bool { return t.Kind == source.Kind && sameName(t.Value, source.Value) })
		if same < 0 {
			m.moved |= 1 << i
		} else {
			left = slices.Delete(slices.Clone(left), same, same+1)
		}
	}
	if m.moved == 0 || bits.OnesCount64(m.moved) == len(m.sources) {
		return nil
	}
	return m
}

// source is the bit of the source that a column of this block or of one inside it
// is read from, 0 for others.
func (m *mover) source(column *sql.Node) uint64 {
	if b := m.scopes.Binding(column); b.Meaning == sql.MeansColumn && b.Source != nil {
		if i := slices.Index(m.sources, b.Source.Node); i >= 0 {
			return 1 << i
		}
	}
	return 0
}

// touches is the set of the sources that a condition reads.
func (m *mover) touches(n *sql.Node) (set uint64) {
	sql.Walk(n, func(n *sql.Node) bool {
		if n.Kind == sql.Column {
			set |= m.source(n)
		}
		return true
	})
	return set
}

// stays is the column of a source that stays which the conditions make equal to a
// column of one that moves, nil for none.
func (m *mover) stays(column *sql.Node) *sql.Node {
	same := func(a, b *sql.Node) bool { return m.source(a) == m.source(b) && sameName(a.Value, b.Value) }
	reached := []*sql.Node{column}
	for i := 0; i < len(reached); i++ {
		for _, c := range slices.Concat(m.joins, m.where) {
			a, b, ok := equatedColumns(c)
			if !ok || !same(a, reached[i]) && !same(b, reached[i]) {
				continue
			}
			if same(a, reached[i]) {
				a, b = b, a
			}
			if m.source(a) != 0 && m.source(a)&m.moved == 0 {
				return a
			}
			if !slices.ContainsFunc(reached, func(r *sql.Node) bool { return same(r, a) }) {
				reached = append(reached, a)
			}
		}
	}
	return nil
}

// substitute puts columns of sources that stay in the place of those that move,
// outside FROM and WHERE. It reports that none is left.
func (m *mover) substitute() bool {
	ok := true
	for _, clause := range m.block.Children {
		if clause.Kind == sql.From || clause.Kind == sql.Where || clause.Kind == sql.With {
			continue
		}
		sql.Walk(clause, func(n *sql.Node) bool {
			isStar := n.Kind == sql.Star && n.Parent.Kind == sql.Item // whose columns would change
			if n.Kind != sql.Column || m.source(n)&m.moved == 0 {
				ok = ok && !isStar
				return true
			}
			equal := m.stays(n)
			if equal == nil {
				ok = false
				return false
			}
			n.Value, n.Qualifier = equal.Value, equal.Qualifier
			return true
		})
	}
	return ok
}

// rewrite moves the sources. It reports that all could be.
func (m *mover) rewrite() bool {
	var where []*sql.Node
	done := uint64(0)
	for _, c := range slices.Concat(m.where, m.joins) {
		group := m.group(m.touches(c) & m.moved)
		switch {
		case group == 0 && slices.Contains(m.where, c):
			where = append(where, c)
		case group != 0 && group&done == 0:
			done |= group
			condition, ok := m.condition(group)
			if !ok {
				return false
			}
			if condition != nil {
				where = append(where, condition)
			}
		}
	}
	if done != m.moved { // a source that nothing ties to the others
		return false
	}
	var joins []*sql.Node
	for _, c := range m.joins {
		if m.touches(c)&m.moved == 0 {
			joins = append(joins, c)
		}
	}
	all := uint64(1)<<len(m.sources) - 1
	replaceChild(m.block, m.block.Child(sql.From), m.from(all&^m.moved, joins))
	setWhere(m.block, where)
	return true
}

// group extends a set of sources that move by those that conditions tie to them.
func (m *mover) group(set uint64) uint64 {
	for grown := set; ; set = grown {
		for _, c := range slices.Concat(m.joins, m.where) {
			if touched := m.touches(c) & m.moved; touched&set != 0 {
				grown |= touched
			}
		}
		if grown == set {
			return set
		}
	}
}

// condition is the sub-query that a group of sources becomes, nil for one that no
// condition narrows.
func (m *mover) condition(group uint64) (condition *sql.Node, ok bool) {
	var key, own *sql.Node // the columns by which it is tied to the sources that stay
	var joins, where []*sql.Node
	isNarrow := false
	for _, c := range slices.Concat(m.joins, m.where) {
		touched := m.touches(c)
		if touched&group == 0 {
			continue
		}
		a, b, isLink := equatedColumns(c)
		isNarrow = isNarrow || !isLink
		switch {
		case isLink && touched&^group != 0 && key == nil:
			if key, own = a, b; m.source(a)&group != 0 {
				key, own = b, a
			}
		case touched&^group == 0 && bits.OnesCount64(touched) > 1:
			joins = append(joins, c)
		default:
			where = append(where, c)
		}
	}
	if key == nil {
		return nil, false
	}
	if !isNarrow && len(where) == 0 {
		return nil, true
	}
	block := branch(sql.Select, "", branch(sql.Projection, "", branch(sql.Item, "", own.Clone())), m.from(group, joins))
	setWhere(block, where)
	return branch(sql.In, "IN", key.Clone(), branch(sql.Subquery, "", block)), true
}

// from joins a set of sources, each condition at the first join where all its
// sources are there.
func (m *mover) from(set uint64, conditions []*sql.Node) *sql.Node {
	from := branch(sql.From, "")
	there := uint64(0)
	for i, source := range m.sources {
		if set&(1<<i) == 0 {
			continue
		}
		there |= 1 << i
		child := source.Clone()
		if len(from.Children) > 0 {
			child = branch(sql.Join, "JOIN", child)
			var ready []*sql.Node
			conditions = slices.DeleteFunc(slices.Clone(conditions), func(c *sql.Node) bool {
				isReady := m.touches(c)&^there == 0
				if isReady {
					ready = append(ready, c)
				}
				return isReady
			})
			if len(ready) > 0 {
				child = branch(sql.Join, "JOIN", source.Clone(), branch(sql.On, "", allOf(ready)))
			}
		}
		child.Parent = from
		from.Children = append(from.Children, child)
	}
	return from
}
