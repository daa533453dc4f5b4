package annotate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"

	"caper/data"
	"caper/sql"
)

// inject makes mutants of a correct query and returns their tuples: draws
// stratified by clause kind, then operator, until enough are accepted (caper.md
// 1.4.3). A mutant is accepted when it runs, its result differs from the
// original's, and it is wrong against gold.
func (o Options) inject(ctx context.Context, base data.Tuple, correct *statement, e *executor, out *outcome) ([]preference, error) {
	q := bind(ctx, correct, e)
	original, err := e.judged(ctx, correct.text)
	if err != nil {
		return nil, err
	}
	draws := o.newDraws(q, base)
	var tuples []preference
	for accepted, tried := 0, 0; accepted < o.Inject && tried < o.Attempts; {
		m, ok := draws.next()
		if !ok {
			break
		}
		mutant, f, ok := q.mutate(m, o.Granularity)
		if !ok {
			out.reject(NoParse)
			continue
		}
		tried++
		out.tried++
		result, err := e.judged(ctx, mutant.text)
		cause, failed := failure(err)
		switch {
		case err != nil && !failed:
			return nil, err
		case failed && draws.random.Float64() >= o.AllowErrorShare:
			out.reject(Reason(cause))
			continue
		case !failed && e.rule.Same(original, result, correct.text):
			out.reject(SameResult)
			continue
		case !failed && e.rule.Same(e.expected, result, e.gold):
			out.reject(StillCorrect)
			continue
		}
		pairs := o.pairs(base, correct, mutant, f)
		if len(pairs) == 0 {
			out.reject(NoPair)
			continue
		}
		accepted++
		out.mutants++
		draws.accept(m)
		tuples = append(tuples, pairs...)
	}
	return tuples, nil
}

// draws hands out a query's mutations in random order without repetition.
type draws struct {
	random *rand.Rand
	// strata holds the clause kinds in canonical order of first appearance,
	// each with its operators and each of these with its mutations.
	strata    []*stratum
	perClause int
	accepted  map[*sql.Node]int
}

type stratum struct {
	kind      sql.Kind
	operators []*drawer
}

type drawer struct {
	name      string
	mutations []mutation
}

// newDraws enumerates the mutations of q. The random stream depends on nothing
// but the seed and the rollout's content.
func (o Options) newDraws(q *query, base data.Tuple) *draws {
	key := sha256.Sum256([]byte(strings.Join([]string{base.Dataset, base.DBID, base.Question, q.text}, "\x00")))
	d := &draws{
		random:    rand.New(rand.NewPCG(o.Seed^binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:]))),
		perClause: o.PerClause,
		accepted:  make(map[*sql.Node]int),
	}
	for _, m := range q.mutations() {
		d.add(m)
	}
	return d
}

// absent is the stratum of all that the query lacks, which counts as one more
// clause: most queries lack more clauses than they have, and a query should be
// found too long about as often as too short.
const absent sql.Kind = "absent"

// add files a mutation under its clause kind and operator.
func (d *draws) add(m mutation) {
	kind := absent
	if clause := m.clause(); clause != nil {
		kind = clause.Kind
	}
	i := slices.IndexFunc(d.strata, func(s *stratum) bool { return s.kind == kind })
	if i < 0 {
		i = len(d.strata)
		d.strata = append(d.strata, &stratum{kind: kind})
	}
	s := d.strata[i]
	j := slices.IndexFunc(s.operators, func(w *drawer) bool { return w.name == m.operator })
	if j < 0 {
		j = len(s.operators)
		s.operators = append(s.operators, &drawer{name: m.operator})
	}
	s.operators[j].mutations = append(s.operators[j].mutations, m)
}

// next draws a mutation of a clause that may still change.
func (d *draws) next() (mutation, bool) {
	for len(d.strata) > 0 {
		i := d.random.IntN(len(d.strata))
		s := d.strata[i]
		j := d.random.IntN(len(s.operators))
		w := s.operators[j]
		k := d.random.IntN(len(w.mutations))
		m := w.mutations[k]
		w.mutations = slices.Delete(w.mutations, k, k+1)
		if len(w.mutations) == 0 {
			s.operators = slices.Delete(s.operators, j, j+1)
		}
		if len(s.operators) == 0 {
			d.strata = slices.Delete(d.strata, i, i+1)
		}
		if d.accepted[m.clause()] < d.perClause {
			return m, true
		}
	}
	return mutation{}, false
}

// accept counts an accepted mutation against its clause.
func (d *draws) accept(m mutation) { d.accepted[m.clause()]++ }

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
	after := sql.Render(replaced(clause, m.old, m.new))
	source := clause.Text(q.text)
	want := replaced(q.tree, m.old, m.new)
	for _, text := range [2]string{
		patch(source, sql.Render(clause), after, q.style),
		join(q.style.dress(lexemes(after))),
	} {
		mutant, ok := parse(q.text[:clause.Start]+text+q.text[clause.End:], q.schema, g)
		if ok && readsAs(mutant.tree, want) {
			f.root = follow(mutant.tree, pathTo(m.old))
			if m.adds {
				f.root = f.root.Children[len(f.root.Children)-1]
			}
			return mutant, f, true
		}
	}
	return nil, f, false
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
