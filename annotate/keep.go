package annotate

import (
	"strconv"

	"caper/sql"
)

// keep restates the wrong query's clauses behind slot k, which alone is repaired
// in text, where their names would no longer mean what they meant: by slot, the
// new texts. An alias or position whose projection the repair took away gives way
// to the expression it stood for; a column that the repaired FROM makes ambiguous
// gets its table. What no longer exists is left as it is, and the query fails.
func (r *repair) keep(k int, text string) map[int]string {
	repaired, ok := parse(text, r.wrong.schema, Top)
	if !ok {
		return nil
	}
	var kept map[int]string
	keeper := &keeper{was: r.scopes(), is: sql.Resolve(repaired.tree, repaired.schema)}
	next := r.indexInRepair(k)
	if r.goldText(k) != "" {
		next++
	}
	for i, s := range r.slots {
		if i <= k || s.wrong < 0 {
			continue
		}
		if next >= repaired.topCount {
			return nil
		}
		before, after := r.wrong.units[s.wrong].node, repaired.units[next].node
		next++
		if !sql.Equal(before, after) { // the repair runs into it
			return nil
		}
		if sql.Equal(r.wrong.canonicalOf(before), repaired.canonicalOf(after)) {
			continue
		}
		if restated := keeper.restate(before, after); !sql.Equal(restated, before) {
			if kept == nil {
				kept = make(map[int]string)
			}
			kept[i] = r.write(i, restated)
		}
	}
	return kept
}

// scopes resolves the wrong query's names, once.
func (r *repair) scopes() *sql.Scopes {
	if r.resolved == nil {
		r.resolved = sql.Resolve(r.wrong.tree, r.wrong.schema)
	}
	return r.resolved
}

// keeper restates names of one tree so that they mean in another what they meant.
type keeper struct {
	was, is *sql.Scopes
}

// restate copies the tree at before, of which after is the same text in the
// repaired query.
func (k *keeper) restate(before, after *sql.Node) *sql.Node {
	if new := k.name(before, after); new != nil {
		return new
	}
	c := *before
	c.Parent, c.Children = nil, make([]*sql.Node, len(before.Children))
	for i, child := range before.Children {
		c.Children[i] = k.restate(child, after.Children[i])
		c.Children[i].Parent = &c
	}
	return &c
}

// name is what must stand in the place of a name, nil where it can stay.
func (k *keeper) name(before, after *sql.Node) *sql.Node {
	switch before.Kind {
	case sql.Number:
		was, is := positioned(before), positioned(after)
		if was != nil && (is == nil || !sql.Equal(was, is)) {
			return was.Clone()
		}
	case sql.Column:
		was, is := k.was.Binding(before), k.is.Binding(after)
		switch was.Meaning {
		case sql.MeansOutput:
			if is.Meaning != sql.MeansOutput || !sql.Equal(was.Expr, is.Expr) {
				return was.Expr.Clone()
			}
		case sql.MeansColumn:
			if was.Source == nil || was.Ambiguous {
				return nil
			}
			isSame := is.Meaning == sql.MeansColumn && !is.Ambiguous && is.Source != nil && is.Source.Instance == was.Source.Instance
			if !isSame {
				return k.qualified(before, after, was)
			}
		}
	}
	return nil
}

// qualified is the column with the name of its source in the repaired query; nil
// where the source is gone.
func (k *keeper) qualified(before, after *sql.Node, was sql.Binding) *sql.Node {
	scope := k.is.Scope(after.Block())
	for range was.Level {
		if scope != nil {
			scope = scope.Outer
		}
	}
	if scope == nil {
		return nil
	}
	for _, source := range scope.Sources {
		if source.Instance == was.Source.Instance && source.Name != before.Qualifier {
			c := before.Clone()
			c.Qualifier = source.Name
			return c
		}
	}
	return nil
}

// positioned is the projected expression that a whole number in GROUP BY or ORDER
// BY of a SELECT block stands for, or nil.
func positioned(n *sql.Node) *sql.Node {
	clause := n.Parent
	if clause != nil && clause.Kind == sql.OrderTerm {
		clause = clause.Parent
	}
	if clause == nil || !clause.IsClause() || clause.Kind != sql.OrderBy && clause.Kind != sql.GroupBy || clause.Parent.Kind != sql.Select {
		return nil
	}
	items := clause.Parent.Child(sql.Projection).Children
	position, err := strconv.Atoi(n.Value)
	if err != nil || position < 1 || position > len(items) {
		return nil
	}
	for _, item := range items[:position] {
		if item.Children[0].Kind == sql.Star {
			return nil
		}
	}
	return items[position-1].Children[0]
}
