package annotate

import (
	"slices"

	"caper/sql"
)

// unit is a clause that can carry a reward: a stretch of a query's text and the
// clause node (for VALUES the block) that stands there.
type unit struct {
	kind       sql.ClauseKind
	node       *sql.Node
	start, end int
	// top is the index of the outermost clause that the unit is or lies in.
	top int
	// depth is the number of clauses around the unit.
	depth int
}

// statement is a parsed query cut into units. Outermost units come first, in
// textual order and partitioning the text; with Nested the units of inner blocks
// follow.
type statement struct {
	text     string
	schema   *sql.Schema
	tree     *sql.Node
	units    []unit
	topCount int
	// canonical holds the canonical form of every clause, once asked for.
	canonical map[*sql.Node]*sql.Node
}

// parse reads text as a statement on a database, with the units of granularity
// g. The token
// scan and the tree must agree on the outermost clauses; ok is false when text
// is no single query or they do not.
func parse(text string, schema *sql.Schema, g Granularity) (s *statement, ok bool) {
	tree, err := sql.Parse(text)
	if err != nil {
		return nil, false
	}
	nodes := sql.ClauseNodes(tree)
	clauses := sql.Clauses(text)
	if len(nodes) != len(clauses) {
		return nil, false
	}
	s = &statement{text: text, schema: schema, tree: tree, topCount: len(clauses)}
	for i, c := range clauses {
		if nodes[i].ClauseKind() != c.Kind || nodes[i].Start < c.Start || nodes[i].End > c.End {
			return nil, false
		}
		s.units = append(s.units, unit{kind: c.Kind, node: nodes[i], start: c.Start, end: c.End, top: i})
	}
	if g == Nested {
		for i, n := range nodes {
			s.addInner(n, i, 1)
		}
	}
	return s, true
}

// addInner adds the units of the blocks inside n, which lies in the outermost
// unit top.
func (s *statement) addInner(n *sql.Node, top, depth int) {
	for _, child := range n.Children {
		if !child.IsBlock() {
			s.addInner(child, top, depth)
			continue
		}
		nodes := sql.ClauseNodes(child)
		for i, c := range nodes {
			end := child.End
			if i+1 < len(nodes) {
				end = nodes[i+1].Start
			}
			s.units = append(s.units, unit{
				kind: c.ClauseKind(), node: c, start: c.Start, end: end, top: top, depth: depth,
			})
			s.addInner(c, top, depth+1)
		}
	}
}

// canonicalOf is the canonical form of a unit's node, nil for a nil node.
func (s *statement) canonicalOf(clause *sql.Node) *sql.Node {
	if clause == nil {
		return nil
	}
	if s.canonical == nil {
		s.canonical = make(map[*sql.Node]*sql.Node)
		sql.Walk(sql.Canonical(s.tree, s.schema), func(n *sql.Node) bool {
			if s.canonical[n.Origin] == nil && (n.IsClause() || n.Kind == sql.Values) {
				s.canonical[n.Origin] = n
			}
			return true
		})
	}
	return s.canonical[clause]
}

// holding is the index of the innermost unit that node n lies in. Blocks that
// are no clause belong to the unit around them; -1 is the statement's own block.
func (s *statement) holding(n *sql.Node) int {
	for ; n != nil; n = n.Parent {
		if i := slices.IndexFunc(s.units, func(u unit) bool { return u.node == n }); i >= 0 {
			return i
		}
	}
	return -1
}

// at returns the text of the unit of the given depth that starts at offset,
// white space ahead of it not counted. At the end of an inner block that is the
// rest of the clause around it, at the end of the statement it is empty.
func (s *statement) at(offset, depth int) (kind sql.ClauseKind, text string, node *sql.Node) {
	next := offset
	for next < len(s.text) && isSpace(s.text[next]) {
		next++
	}
	for _, u := range s.units {
		if u.depth == depth && (u.start == offset || u.start == next) {
			return u.kind, s.text[offset:u.end], u.node
		}
	}
	if depth > 0 {
		top := slices.IndexFunc(s.units[:s.topCount], func(u unit) bool { return next < u.end })
		if top >= 0 {
			return sql.ClauseEnd, s.text[offset:s.units[top].end], nil
		}
	}
	return sql.ClauseEnd, "", nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
