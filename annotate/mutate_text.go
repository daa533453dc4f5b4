package annotate

import (
	"slices"
	"strings"

	"caper/annotate/style"
	"caper/sql"
)

// mutate writes the mutant as text, leaving every clause but the changed one as
// it is, and parses it. The parsed tree must be the intended one.
func (q *query) mutate(m mutation, g Granularity) (*statement, fault, bool) {
	f := fault{source: sourceInjection, operator: m.operator}
	if m.new == nil {
		return q.dropped(m.old, g, f)
	}
	if m.old.IsBlock() {
		return q.added(m.old, m.new, g, f)
	}
	clause := m.old.Clause()
	after := replaced(clause, m.old, m.new)
	for _, write := range []func(*sql.Node) string{q.patcher(clause).Patch, q.style.Write} {
		text := write(after)
		mutant, ok := parse(q.text[:clause.Start]+text+q.text[clause.End:], q.schema, g)
		if ok && style.ReadsAsChanged(mutant.tree, q.tree, m.old, m.new) {
			f.root = follow(mutant.tree, pathTo(m.old))
			if m.adds {
				f.root = f.root.Children[len(f.root.Children)-1]
			}
			return mutant, f, true
		}
	}
	return nil, f, false
}

// patcher rewrites a clause. A query has many mutants of one clause.
func (q *query) patcher(clause *sql.Node) *style.Patcher {
	p, ok := q.patchers[clause]
	if !ok {
		p = style.NewPatcher(clause.Text(q.text), clause, q.style)
		q.patchers[clause] = p
	}
	return p
}

// dropped writes the query without one clause. What then ends the query has no
// closing semicolon: the missing clause would stand before it.
func (q *query) dropped(clause *sql.Node, g Granularity, f fault) (*statement, fault, bool) {
	start, end, block := clause.Start, clause.End, clause.Parent
	whole := block // with the set operations that follow its first operand
	if block.Parent != nil && block.Parent.Kind == sql.Compound {
		whole = block.Parent
	}
	i := slices.IndexFunc(q.units, func(u unit) bool { return u.node == clause })
	switch isTop := i >= 0 && i < q.topCount; {
	case isTop && i < q.topCount-1:
		end = q.units[i+1].start
	case isTop:
		end = len(q.text)
		start = len(strings.TrimRight(q.text[:start], spaces))
	case end < whole.End:
		end += len(q.text[end:]) - len(strings.TrimLeft(q.text[end:], spaces))
	default:
		start = len(strings.TrimRight(q.text[:start], spaces))
		if strings.Trim(q.text[end:], spaces+";") == "" { // the block ends the query
			end = len(q.text)
		}
	}
	mutant, ok := parse(q.text[:start]+q.text[end:], q.schema, g)
	if !ok {
		return nil, f, false
	}
	f.missing = true
	f.root = missingClause(clause.Kind, follow(mutant.tree, pathTo(block)), start)
	return mutant, f, f.root.Parent != nil
}

// added writes the query with one more clause in its block. White space between
// clauses is repeated; at the end of a block it belongs to the new clause, as it
// does where the last clause is missing, so that both queries share the prefix.
func (q *query) added(block, clause *sql.Node, g Granularity, f fault) (*statement, fault, bool) {
	i := placeOf(clause.ClauseKind(), block)
	offset := block.Children[i-1].End
	next := nextClause(block, i)
	gap := " "
	switch {
	case next != nil:
		gap = q.text[offset:next.Start]
	case i > 1: // as ahead of the last clause
		gap = q.text[block.Children[i-2].End:block.Children[i-1].Start]
	}
	endsQuery := next == nil && block.Parent == nil
	if gap == "" || strings.Trim(gap, spaces) != "" || endsQuery && strings.Trim(q.text[offset:], spaces+";") != "" {
		return nil, f, false // a comment stands there, or ")ORDER BY"
	}
	text := q.style.Write(clause)
	mutant, ok := parse(q.text[:offset]+gap+text+q.text[offset:], q.schema, g)
	if !ok {
		return nil, f, false
	}
	start := offset + len(gap)
	sql.Walk(mutant.tree, func(n *sql.Node) bool {
		if n.IsClause() && n.Start == start && style.ReadsAs(n, clause) {
			f.root = n
		}
		return f.root == nil
	})
	if next == nil {
		mutant.move(start, offset)
	}
	return mutant, f, f.root != nil
}

// move shifts the border between two units to an offset in the white space ahead
// of it.
func (s *statement) move(border, offset int) {
	for i := range s.units {
		u := &s.units[i]
		for _, at := range []*int{&u.start, &u.end, &u.clause} {
			if *at == border {
				*at = offset
			}
		}
	}
}

// placeOf is the index among a block's children at which a clause would stand.
func placeOf(kind sql.ClauseKind, block *sql.Node) int {
	i := slices.IndexFunc(block.Children, func(c *sql.Node) bool { return c.IsClause() && c.ClauseKind().Rank() > kind.Rank() })
	if i < 0 {
		return len(block.Children)
	}
	return i
}

// nextClause is child i of a block or, behind its last, the set operation that
// follows; nil at the end.
func nextClause(block *sql.Node, i int) *sql.Node {
	if i == len(block.Children) && isOperand(block) {
		i, block = block.Index()+1, block.Parent
	}
	return at(block.Children, i)
}

// pathTo lists the child indices that lead from the root to n.
func pathTo(n *sql.Node) []int {
	var path []int
	for ; n.Parent != nil; n = n.Parent {
		path = append(path, n.Index())
	}
	slices.Reverse(path)
	return path
}

// follow walks a path from the root; nil where it leads nowhere.
func follow(n *sql.Node, path []int) *sql.Node {
	for _, i := range path {
		if i >= len(n.Children) {
			return nil
		}
		n = n.Children[i]
	}
	return n
}
