package annotate

import (
	"slices"
	"strings"

	"caper/sql"
)

// unit is a clause, or with Predicate also a part of one, that can carry a
// reward: a stretch of a query's text and the clause node (for VALUES the block)
// that stands there.
type unit struct {
	kind       sql.ClauseKind
	node       *sql.Node
	start, end int
	// top is the index of the outermost clause that the unit is or lies in.
	top int
	// depth is the number of clauses around the clause.
	depth int
	// isPart says that the unit is one of several parts of its clause, which
	// starts at clause.
	isPart bool
	clause int
}

// statement is a parsed query cut into units. Outermost units come first, in
// textual order and partitioning the text; with Nested the units of inner blocks
// follow, with Predicate also the parts of all clauses.
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
// g. The token scan and the tree must agree on the outermost clauses; ok is false
// when text is no single query or they do not.
func parse(text string, schema *sql.Schema, g Granularity) (s *statement, ok bool) {
	tree, clauses, err := sql.ParseUnits(text)
	if err != nil {
		return nil, false
	}
	nodes := sql.ClauseNodes(tree)
	if len(nodes) != len(clauses) {
		return nil, false
	}
	s = &statement{text: text, schema: schema, tree: tree, topCount: len(clauses)}
	for i, c := range clauses {
		if nodes[i].ClauseKind() != c.Kind || nodes[i].Start < c.Start || nodes[i].End > c.End {
			return nil, false
		}
		s.units = append(s.units, unit{kind: c.Kind, node: nodes[i], start: c.Start, end: c.End, top: i, clause: c.Start})
	}
	if g != Top {
		for i, n := range nodes {
			s.addInner(n, i, 1)
		}
	}
	if g == Predicate {
		s.addParts()
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
				kind: c.ClauseKind(), node: c, start: c.Start, end: end, top: top, depth: depth, clause: c.Start,
			})
			s.addInner(c, top, depth+1)
		}
	}
}

// addParts adds the parts of every clause that has more than one. White space
// between two parts belongs to the second, so that the text ahead of a part does
// not tell whether the part is there.
func (s *statement) addParts() {
	clauses := s.units
	starts := make([][]int, len(clauses))
	for _, p := range sql.Predicates(s.tree, s.text) {
		k := slices.IndexFunc(clauses, func(u unit) bool { return u.depth == p.Depth && u.start <= p.Start && p.Start < u.end })
		if k >= 0 {
			starts[k] = append(starts[k], p.Start)
		}
	}
	for k, list := range starts {
		if len(list) < 2 {
			continue
		}
		part := clauses[k]
		part.isPart = true
		for i := range list {
			part.end = clauses[k].end
			if i+1 < len(list) {
				part.end = len(strings.TrimRight(s.text[:list[i+1]], spaces))
			}
			s.units = append(s.units, part)
			part.start = part.end
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

// holding is the index of the innermost unit that node n lies in, -1 for the
// statement's own block.
func (s *statement) holding(n *sql.Node) int {
	holder := -1
	for i, u := range s.units {
		if u.start <= n.Start && n.End <= u.end && (holder < 0 || u.isInside(s.units[holder])) {
			holder = i
		}
	}
	return holder
}

// isInside orders units of which one holds the other: inner blocks are inside of
// clauses, parts too.
func (u unit) isInside(v unit) bool {
	return u.depth > v.depth || u.depth == v.depth && u.isPart && !v.isPart
}

// at returns the text of the unit of u's depth that starts at offset, white space
// ahead of it not counted: a part if u is one, for want of one a clause. At the
// end of an inner block that is the rest of the clause around it, at the end of
// the statement it is empty.
func (s *statement) at(offset int, u unit) (kind sql.ClauseKind, text string, node *sql.Node) {
	next := s.pastSpace(offset)
	found := -1
	for i, v := range s.units {
		if v.depth == u.depth && (v.start == offset || v.start == next) && (found < 0 || u.isPart && v.isPart) {
			found = i
		}
	}
	if found >= 0 {
		return s.units[found].kind, s.text[offset:s.units[found].end], s.units[found].node
	}
	if u.depth > 0 {
		top := slices.IndexFunc(s.units[:s.topCount], func(u unit) bool { return next < u.end })
		if top >= 0 {
			return sql.ClauseEnd, s.text[offset:s.units[top].end], nil
		}
	}
	return sql.ClauseEnd, "", nil
}

// hasBorder reports that a unit of the given depth starts at offset, white space
// aside, or ends there.
func (s *statement) hasBorder(offset, depth int) bool {
	next := s.pastSpace(offset)
	return slices.ContainsFunc(s.units, func(u unit) bool {
		return u.depth == depth && (u.start == offset || u.start == next || len(strings.TrimRight(s.text[:u.end], spaces+";")) == offset)
	})
}

// pastSpace is the offset of the first byte from offset on that is no white space.
func (s *statement) pastSpace(offset int) int {
	return offset + len(s.text[offset:]) - len(strings.TrimLeft(s.text[offset:], spaces))
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }
