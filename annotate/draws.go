package annotate

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"

	"caper/data"
	"caper/sql"
)

// draws hands out a query's mutations in random order without repetition: a clause
// kind first, then an operator, then one of its mutations (caper.md 1.4.3), each
// uniformly over those that have some. An operator that few queries have a use for
// (scarceOperators) is the first of its clause kind.
type draws struct {
	query  *query
	random *rand.Rand
	// own and foreign hold the clause kinds in pre-order of first appearance.
	own, foreign []*stratum
	perClause    int
	accepted     map[*sql.Node]int
}

// stratum is a clause kind with the operators that may apply to it.
type stratum struct {
	operators []*drawer
	isOpened  bool // something was drawn from it
}

// drawer hands out the mutations of one operator. It lists them when it is first
// drawn: of most operators nobody asks.
type drawer struct {
	operator
	adds      bool
	nodes     []*sql.Node // that it looks at
	isListed  bool
	mutations []mutation
}

// newDraws prepares the draws of q's mutations. The random stream depends on nothing
// but the seed and the rollout's content.
func (o Options) newDraws(q *query, base data.Tuple) *draws {
	key := sha256.Sum256([]byte(strings.Join([]string{base.Dataset, base.DBID, base.Question, q.text}, "\x00")))
	d := &draws{
		query:     q,
		random:    rand.New(rand.NewPCG(o.Seed^binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:]))),
		perClause: o.PerClause,
		accepted:  make(map[*sql.Node]int),
	}
	d.own, d.foreign = q.strata()
	return d
}

// strata lists the clause kinds and operators that q's nodes offer. All that q lacks
// is one stratum, as if it were one more clause: most queries lack more clauses than
// they have, and a query should be found too long about as often as too short.
func (q *query) strata() (own, foreigners []*stratum) {
	var kinds []sql.Kind
	nodes := make(map[sql.Kind][]*sql.Node) // by the clause or block that holds them
	sql.Walk(q.tree, func(n *sql.Node) bool {
		holder := n
		if !n.IsBlock() {
			holder = n.Clause()
		}
		if nodes[holder.Kind] == nil {
			kinds = append(kinds, holder.Kind)
		}
		nodes[holder.Kind] = append(nodes[holder.Kind], n)
		return true
	})
	absent := &stratum{}
	for _, kind := range kinds {
		own = appendStratum(own, operators[kind], nodes[kind])
		foreigners = appendStratum(foreigners, foreign[kind], nodes[kind])
		for _, op := range additions[kind] {
			absent.add(op, nodes[kind])
		}
	}
	return append(own, absent), foreigners
}

func appendStratum(strata []*stratum, list []operator, nodes []*sql.Node) []*stratum {
	if len(list) == 0 {
		return strata
	}
	s := &stratum{}
	for _, op := range list {
		s.operators = append(s.operators, &drawer{operator: op, nodes: nodes})
	}
	return append(strata, s)
}

// add lets an operator that adds something look at more nodes.
func (s *stratum) add(op operator, nodes []*sql.Node) {
	i := slices.IndexFunc(s.operators, func(w *drawer) bool { return w.name == op.name })
	if i < 0 {
		i = len(s.operators)
		s.operators = append(s.operators, &drawer{operator: op, adds: true})
	}
	s.operators[i].nodes = slices.Concat(s.operators[i].nodes, nodes)
}

// list returns the mutations that are left, in pre-order of the nodes.
func (w *drawer) list(q *query) []mutation {
	if w.isListed {
		return w.mutations
	}
	w.isListed = true
	for _, n := range w.nodes {
		if w.adds && n.Parent != nil && n.Parent.Kind == sql.SetOp {
			continue // the set operation ends with the block: nothing can follow it there
		}
		w.propose(q, n, func(old, new *sql.Node) {
			w.mutations = append(w.mutations, mutation{operator: w.name, old: old, new: new, adds: w.adds})
		})
	}
	return w.mutations
}

// next draws a mutation of a clause that may still change: one of the query's own
// constructs as long as there are any and it is early, then a foreign one.
func (d *draws) next(early bool) (mutation, bool) {
	if early {
		if m, ok := d.from(&d.own); ok {
			return m, true
		}
	}
	if m, ok := d.from(&d.foreign); ok {
		return m, true
	}
	return d.from(&d.own)
}

// from draws from the strata. What turns out to be empty is left out and drawn anew
// within its like, so that the others' chances are equal.
func (d *draws) from(strata *[]*stratum) (mutation, bool) {
	for len(*strata) > 0 {
		i := d.random.IntN(len(*strata))
		m, ok := d.fromStratum((*strata)[i])
		switch {
		case !ok:
			*strata = slices.Delete(*strata, i, i+1)
		case !d.isFull(m):
			return m, true
		}
	}
	return mutation{}, false
}

func (d *draws) fromStratum(s *stratum) (mutation, bool) {
	for len(s.operators) > 0 {
		j := s.scarce(d.query)
		if j < 0 {
			j = d.random.IntN(len(s.operators))
		}
		w := s.operators[j]
		if len(w.list(d.query)) == 0 {
			s.operators = slices.Delete(s.operators, j, j+1)
			continue
		}
		k := d.random.IntN(len(w.mutations))
		m := w.mutations[k]
		w.mutations = slices.Delete(w.mutations, k, k+1)
		return m, true
	}
	return mutation{}, false
}

// scarce is the place of the operator that the stratum's first draw belongs to, -1
// for none.
func (s *stratum) scarce(q *query) int {
	if s.isOpened {
		return -1
	}
	s.isOpened = true
	return slices.IndexFunc(s.operators, func(w *drawer) bool { return scarceOperators[w.name] && len(w.list(q)) > 0 })
}

// isFull reports that a mutation's clause has been changed as often as it may.
func (d *draws) isFull(m mutation) bool { return d.accepted[m.clause()] >= d.perClause }

// accept counts an accepted mutation against its clause.
func (d *draws) accept(m mutation) { d.accepted[m.clause()]++ }
