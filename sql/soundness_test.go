package sql

import (
	"database/sql"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestCanonicalEqualsGiveEqualResults changes random statements a little and
// checks that wherever the canonical form stays the result does, on databases
// with NULLs, duplicates and mixed types.
func TestCanonicalEqualsGiveEqualResults(t *testing.T) {
	t.Parallel()
	var dbs []*sql.DB
	for seed := range uint64(3) {
		dbs = append(dbs, openToys(t, seed))
	}
	schema := schemaOf(t, dbs[0])
	rng := rand.New(rand.NewPCG(13, 17))
	equal, changed := 0, 0
	for range *mutants / 2 {
		n, err := Parse(writeStatement(rng, toySources()))
		if err != nil || !isDeterminate(n) || prepare(dbs[0], Render(n)) != nil {
			continue
		}
		want := Canonical(n, schema)
		for range 8 {
			m := n.Clone()
			for range 1 + rng.IntN(2) {
				perturb(rng, m)
			}
			text := Render(m)
			again, err := Parse(text)
			if err != nil || Equal(n, again) {
				continue
			}
			changed++
			if !Equal(Canonical(again, schema), want) {
				continue
			}
			equal++
			for _, db := range dbs {
				a, errA := bag(db, Render(n))
				b, errB := bag(db, text)
				if errA == errSlow || errB == errSlow {
					continue
				}
				if (errA == nil) != (errB == nil) || !slices.Equal(a, b) {
					t.Errorf("%s: %d rows, %v\n%s: %d rows, %v\n\tgive different rows but have the canonical form\n\t%s",
						Render(n), len(a), errA, text, len(b), errB, Render(want))
					break
				}
			}
		}
	}
	t.Logf("of %d changed statements %d have the same canonical form", changed, equal)
}

// bag is a query's rows in sorted order.
func bag(db *sql.DB, text string) ([]string, error) {
	list, err := rows(db, text)
	slices.Sort(list)
	return list, err
}

// isDeterminate reports that a statement's rows follow from SQL's rules alone. A
// LIMIT, a window or a concatenation depends on an order that may be left open, and
// so does the first row of a scalar sub-query and a column beside aggregates that
// is no key of GROUP BY.
func isDeterminate(n *Node) bool {
	determinate := true
	Walk(n, func(n *Node) bool {
		switch {
		case n.Kind == Limit, n.Kind == Over, n.Value == "group_concat", n.Value == "string_agg":
			determinate = false
		case n.Kind == From && n.Parent.Parent != nil && n.Parent.Parent.Kind == Subquery && n.Parent.Parent.Parent.Kind != In:
			determinate = determinate && len(n.Children) == 1 && n.Parent.Child(GroupBy) == nil
		case n.Kind == Select && (n.Child(GroupBy) != nil || n.Child(Having) != nil || hasAggregate(n.Child(Projection))):
			var keys []string
			if group := n.Child(GroupBy); group != nil {
				for _, key := range group.Children {
					keys = append(keys, Render(key))
				}
			}
			for _, kind := range []Kind{Projection, Having, OrderBy} {
				Walk(n.Child(kind), func(n *Node) bool {
					if n.Kind == Column && !slices.Contains(keys, Render(n)) {
						determinate = false
					}
					return n.Kind != Aggregate && determinate
				})
			}
		}
		return determinate
	})
	return determinate
}

func hasAggregate(n *Node) (found bool) {
	Walk(n, func(n *Node) bool {
		found = found || n.Kind == Aggregate
		return !n.IsBlock()
	})
	return found
}

// perturb changes one node of a tree in one of the ways that often, but not
// always, leave the meaning as it is.
func perturb(rng *rand.Rand, root *Node) {
	var nodes []*Node
	Walk(root, func(n *Node) bool { nodes = append(nodes, n); return true })
	turned := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
	for range 50 {
		n := nodes[rng.IntN(len(nodes))]
		switch n.Kind {
		case And, Or, List, Binary, Row, Projection, GroupBy, OrderBy, Is, Values, CTE, With, Using, Compound, Function:
			if k := len(n.Children); k > 1 {
				i, j := rng.IntN(k), rng.IntN(k)
				if n.Children[i].Kind == n.Children[j].Kind || n.Kind == Binary {
					n.Children[i], n.Children[j] = n.Children[j], n.Children[i]
				}
			}
		case Compare:
			n.Children[0], n.Children[1] = n.Children[1], n.Children[0]
			if rng.IntN(4) > 0 {
				n.Value = turned[n.Value]
			}
		case From, JoinGroup:
			swapSources(rng, n)
		case Join:
			n.Value = one(rng, ",", "JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN", "FULL JOIN")
		case On:
			moveCondition(rng, n)
		case Alias, Name:
			n.Value = one(rng, "singer", "Concert", "id", "name", "x9", nodes[rng.IntN(len(nodes))].Value)
		case Column:
			other := nodes[rng.IntN(len(nodes))]
			switch rng.IntN(4) {
			case 0:
				n.Qualifier = ""
			case 1:
				n.Qualifier = other.Qualifier
			case 2:
				if other.Kind == Alias || other.Kind == Column {
					n.Value = other.Value
				}
			case 3:
				n.DoubleQuoted = n.Qualifier == ""
			}
		case String:
			if n.Value != "" && !strings.Contains(n.Value, "{") {
				n.Kind, n.DoubleQuoted = Column, true
			}
		case Number:
			n.Value = one(rng, "0"+n.Value, n.Value+".0", "0x1", "1", "1.0")
		case OrderTerm:
			n.Children[0] = &Node{Kind: Number, Value: "1", Parent: n}
		case Collate:
			n.Value = one(rng, "NOCASE", "BINARY")
		default:
			continue
		}
		return
	}
}

// swapSources exchanges two sources of a FROM list and leaves the joins and their
// conditions where they are.
func swapSources(rng *rand.Rand, from *Node) {
	slot := func() **Node {
		c := &from.Children[rng.IntN(len(from.Children))]
		if (*c).Kind == Join {
			return &(*c).Children[0]
		}
		return c
	}
	a, b := slot(), slot()
	if (*a).Kind != Alias && (*b).Kind != Alias {
		*a, *b = *b, *a
		(*a).Parent, (*b).Parent = (*b).Parent, (*a).Parent
	}
}

// moveCondition takes an ON condition to WHERE or to another join.
func moveCondition(rng *rand.Rand, on *Node) {
	join := on.Parent
	from := join.Parent
	target := from.Children[rng.IntN(len(from.Children))]
	if target.Kind != Join || target.Child(On) != nil || target.Child(Using) != nil {
		return
	}
	join.Children = join.Children[:1]
	target.add(on)
}
