package sql

import (
	"slices"
	"strings"
)

// from makes the canonical FROM clause. Its leading sources, as long as inner
// joins without USING connect them, may stand in any order; they are sorted.
func (c *canonicaliser) from(n *Node) *Node {
	run := 1
	for run < len(n.Children) && isInnerJoin(n.Children[run]) {
		run++
	}
	out := stand(n, From, "")
	c.innerJoins(out, n.Children[:run])
	for _, join := range n.Children[run:] {
		out.add(c.node(join))
	}
	return out
}

// join makes the canonical form of a join that keeps its place. Comma and CROSS
// JOIN mean JOIN, and the columns that a USING or NATURAL join merges are written
// as pairs of what they stand for, since the names that they are called by vanish.
func (c *canonicaliser) join(n *Node) *Node {
	out := c.children(stand(n, Join, n.Value), n.Children)
	if n.Value == "," || n.Value == "CROSS JOIN" {
		out.Value = "JOIN"
	}
	merging := out.Child(Using)
	if merging == nil {
		if !strings.HasPrefix(n.Value, "NATURAL") {
			return out
		}
		merging = stand(n, Using, "")
		out.add(merging)
	}
	sources := c.scopeOf(n).Sources
	for i, s := range sources {
		if s.Node != n.Children[0] && !slices.Contains(s.Node.Ancestors(), n.Children[0]) {
			continue
		}
		for name := range s.merged {
			pair := s.Instance + "." + c.columnName(s, s.Find(name))
			for _, left := range sources[:i] {
				if k := left.Find(name); k >= 0 {
					pair = left.Instance + "." + c.columnName(left, k) + "=" + pair
					break
				}
			}
			merging.add(stand(merging.Origin, Name, pair))
		}
		if s.Open {
			merging.add(stand(merging.Origin, Name, Render(merging.Origin))) // the columns are not known
		}
	}
	slices.SortFunc(merging.Children, compareNodes)
	return out
}

// scopeOf is the scope that a join brings its source into.
func (c *canonicaliser) scopeOf(join *Node) *Scope {
	n := join.Parent
	for c.Scope(n) == nil {
		n = n.Parent
	}
	return c.Scope(n)
}

// isInnerJoin reports that n joins by comma, JOIN or CROSS JOIN, which mean the
// same in SQLite, and merges no columns.
func isInnerJoin(n *Node) bool {
	return n.Kind == Join && (n.Value == "," || n.Value == "JOIN" || n.Value == "CROSS JOIN") && n.Child(Using) == nil
}

// innerJoins adds a source and the inner joins after it to out, sources sorted.
// The k-th join of the result stands for the k-th of the text.
func (c *canonicaliser) innerJoins(out *Node, nodes []*Node) {
	sources := make([]*Node, len(nodes)) // in canonical form
	var conditions []*Node
	var ons []*Node // the ON that the k-th condition stood in
	for i, n := range nodes {
		if n.Kind != Join {
			sources[i] = c.node(n)
			continue
		}
		sources[i] = c.node(n.Children[0])
		if on := n.Child(On); on != nil {
			for _, condition := range conjuncts(c.node(on.Children[0])) {
				conditions, ons = append(conditions, condition), append(ons, on)
			}
		}
	}
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	if len(nodes) > 1 && !c.showsOrder(nodes[0].Block(), nodes) {
		slices.SortStableFunc(order, func(i, j int) int { return compareNodes(sources[i], sources[j]) })
	}

	instances := make(map[string]int, len(order)) // canonical position of each source
	for position, i := range order {
		if s := c.sourceOf(nodes[i]); s != nil {
			instances[s.Instance] = position
		}
	}
	joins := make([]*Node, len(order))
	for position, i := range order {
		if position == 0 {
			out.add(sources[i])
			continue
		}
		joins[position] = stand(nodes[position], Join, "JOIN")
		joins[position].add(sources[i])
		out.add(joins[position])
	}
	for k, condition := range conditions {
		join := joins[max(1, lastSource(condition, instances))]
		addCondition(join, ons[k], condition)
	}
	for _, join := range joins[1:] {
		if on := join.Child(On); on != nil {
			sortConjuncts(on)
		}
	}
}

// showsOrder reports that the order of a block's leading sources can be seen in its
// result: a bare star lists their columns, and a column that a later join merges is
// that of the first of several that have it.
func (c *canonicaliser) showsOrder(block *Node, leading []*Node) bool {
	if block.Parent == nil || block.Parent.Kind != Exists {
		for _, item := range block.Child(Projection).Children {
			if star := item.Children[0]; star.Kind == Star && star.Qualifier == "" {
				return true
			}
		}
	}
	for _, later := range c.Scope(block).Sources {
		for name := range later.merged {
			have := 0
			for _, n := range leading {
				if s := c.sourceOf(n); s == nil || s.Open || s.Find(name) >= 0 {
					have++
				}
			}
			if have > 1 {
				return true
			}
		}
	}
	return false
}

// sourceOf is the source that a child of FROM is or joins, nil for a
// parenthesised join without alias.
func (c *canonicaliser) sourceOf(n *Node) *Source {
	if n.Kind == Join {
		n = n.Children[0]
	}
	return c.Source(n)
}

// conjuncts are the operands of a condition's outermost AND.
func conjuncts(condition *Node) []*Node {
	if condition.Kind == And {
		return condition.Children
	}
	return []*Node{condition}
}

// lastSource is the highest canonical position of the sources that a condition
// names, 0 for none.
func lastSource(condition *Node, instances map[string]int) int {
	last := 0
	Walk(condition, func(n *Node) bool {
		if n.Kind == Column {
			last = max(last, instances[n.Qualifier])
		}
		return true
	})
	return last
}

// addCondition adds a conjunct to a join's ON condition, which stands for on.
func addCondition(join, on, condition *Node) {
	target := join.Child(On)
	if target == nil {
		target = stand(on, On, "")
		join.add(target)
	}
	target.add(condition)
}

// sortConjuncts puts the conjuncts gathered under on into one sorted AND.
func sortConjuncts(on *Node) {
	if len(on.Children) < 2 {
		return
	}
	and := stand(on.Origin.Children[0], And, "")
	for _, c := range on.Children {
		and.add(c)
	}
	slices.SortStableFunc(and.Children, compareNodes)
	on.Children = nil
	on.add(and)
}
