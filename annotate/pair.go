package annotate

import (
	"slices"
	"strings"

	"caper/data"
	"caper/sql"
)

// fault is what sets a wrong query apart from a correct one that shares its
// text up to the faulty clause.
type fault struct {
	source, operator string
	// root is v*, a node of the wrong query's tree. Where a whole clause is
	// missing it is a clause node without text, hung under the block that lacks
	// it but not among its children.
	root    *sql.Node
	missing bool
}

// preference is a tuple and the number of clauses around its unit.
type preference struct {
	data.Tuple
	depth int
}

// Sources of tuples.
const (
	sourceInjection      = "injection"
	sourceCounterfactual = "counterfactual"
)

// missingClause makes the v* of a clause that block lacks at offset.
func missingClause(kind sql.Kind, block *sql.Node, offset int) *sql.Node {
	return &sql.Node{Kind: kind, Parent: block, Start: offset, End: offset}
}

// pairs lists the preferences that a fault gives: one for the clause that holds
// v* and, where the reward propagates to clauses around it, one for each of
// them, innermost first. base holds the fields that all share.
func (o Options) pairs(base data.Tuple, chosen, rejected *statement, f fault) []preference {
	wrong := rejected.separable(chosen, f.root)
	base.Source, base.Operator = f.source, f.operator
	base.SQLChosen, base.SQLRejected = chosen.text, rejected.text
	base.ClauseCount = wrong.topCount
	base.Root = data.Root{Start: f.root.Start, End: f.root.End, Kind: string(rejected.meaningOf(f.root))}

	holder := -1
	var tuples []preference
	if f.missing && (o.Granularity != Top || wrong.depthOf(f.root.Parent) == 0) {
		tuples = append(tuples, o.missingPair(base, chosen, wrong, f.root))
	} else {
		holder = wrong.holding(f.root)
	}
	rewards := o.clauseRewards(wrong, f.root, holder)
	order := make([]int, 0, len(rewards))
	for k, r := range rewards {
		if r < 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch u, v := wrong.units[a], wrong.units[b]; {
		case u.isInside(v):
			return -1
		case v.isInside(u):
			return 1
		}
		return 0
	})
	for _, k := range order {
		u := wrong.units[k]
		if len(chosen.text) < u.start || chosen.text[:u.start] != wrong.text[:u.start] {
			continue // the fault lies ahead of the clause
		}
		if f.root.Start < u.start || u.end < f.root.End {
			continue // only a dependency edge leads here: the clause itself is sound
		}
		t := base
		_, text, _ := chosen.at(u.start, u)
		kind, _, node := chosen.at(u.clause, unit{depth: u.depth})
		if kind != u.kind {
			node = nil // the clause is one too many: the edit deletes it
		}
		t.Prefix, t.Chosen, t.Rejected = wrong.text[:u.start], text, wrong.text[u.start:u.end]
		t.Clause, t.ClauseIndex = string(u.kind), u.top
		t.RootClause = k == holder
		tuples = append(tuples, preference{priced(t, rewards[k], wrong.canonicalOf(u.node), chosen.canonicalOf(node)), u.depth})
	}
	return slices.DeleteFunc(tuples, func(t preference) bool {
		isSame := strings.Trim(t.Chosen, spaces) == strings.Trim(t.Rejected, spaces)
		return isSame || t.RootClause && t.EditCost == 0 // a clause that says the same is not at fault
	})
}

// meaningOf is a node's kind, for a string that is written like a name ("France")
// that of a string.
func (s *statement) meaningOf(n *sql.Node) sql.Kind {
	if n.Kind == sql.Column && n.DoubleQuoted && sql.Resolve(s.tree, s.schema).Binding(n).Meaning == sql.MeansString {
		return sql.String
	}
	return n.Kind
}

// missingPair is the preference for a clause that the wrong query lacks: what
// stands in its place is the rejected unit, nothing at the end of the query.
func (o Options) missingPair(base data.Tuple, chosen, wrong *statement, root *sql.Node) preference {
	missing := unit{depth: wrong.depthOf(root.Parent)}
	base.Prefix = wrong.text[:root.Start]
	_, base.Rejected, _ = wrong.at(root.Start, missing)
	_, text, node := chosen.at(root.Start, missing)
	base.Chosen, base.Clause = text, string(root.ClauseKind())
	base.ClauseIndex = wrong.topIndex(root.Start)
	base.RootClause = true
	return preference{priced(base, -o.Alpha, nil, chosen.canonicalOf(node)), missing.depth}
}

// priced fills in the reward, the edit cost between the canonical clauses, and
// the margin delta_k (caper.md 1.4.6): the correct unit's reward is 0, so it is -R_k.
func priced(t data.Tuple, reward float64, wrong, right *sql.Node) data.Tuple {
	cost, _ := sql.Distance(wrong, right)
	t.Reward, t.Margin, t.EditCost = reward, -reward, float64(cost)
	return t
}

// separable drops the inner units and parts that cannot be told from the clause
// around them because the correct query has no unit at the same place after the
// same text. Outermost clauses always stay, and v* that is a whole clause, which
// may be one too many at the end of its block, as may a part.
func (s *statement) separable(chosen *statement, root *sql.Node) *statement {
	shared := commonPrefix(s.text, chosen.text)
	c := *s
	c.units = slices.DeleteFunc(slices.Clone(s.units), func(u unit) bool {
		switch {
		case u.isPart:
			return u.start > shared || !chosen.hasBorder(u.start, u.depth)
		case u.depth == 0 || u.node == root:
			return false
		}
		return u.start > shared || !slices.ContainsFunc(chosen.units, func(v unit) bool {
			return v.start == u.start && v.depth == u.depth
		})
	})
	return &c
}

// depthOf is the number of clauses around a block.
func (s *statement) depthOf(block *sql.Node) int {
	depth := 0
	for n := block.Parent; n != nil; n = n.Parent {
		if n.IsClause() {
			depth++
		}
	}
	return depth
}

// topIndex is the index of the outermost unit at offset; the number of units at
// the end of the statement.
func (s *statement) topIndex(offset int) int {
	if offset >= len(strings.TrimRight(s.text, spaces+";")) {
		return s.topCount
	}
	return slices.IndexFunc(s.units[:s.topCount], func(u unit) bool { return offset < u.end })
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
