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
	"caper/sqlexec"
)

// inject makes mutants of a correct query and returns their tuples: draws
// stratified by clause kind, then operator, until enough are accepted (caper.md
// 1.4.3). The last quarter of the attempts begins with foreign constructs.
func (o Options) inject(ctx context.Context, base data.Tuple, correct *statement, e *executor, out *outcome) ([]preference, error) {
	q := bind(ctx, correct, e)
	original, err := e.judged(ctx, correct.text)
	if err != nil {
		return nil, err
	}
	draws := o.newDraws(q, base)
	var tuples []preference
	for accepted, tried := 0, 0; accepted < o.Inject && tried < o.Attempts; {
		m, ok := draws.next(tried < o.Attempts-o.Attempts/4)
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
		reason, err := e.judgeMutant(ctx, correct.text, mutant.text, original)
		switch {
		case err != nil:
			return nil, err
		case reason == SameResult || reason == StillCorrect,
			reason != "" && draws.random.Float64() >= o.AllowErrorShare:
			out.reject(reason)
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

// judgeMutant says why a mutant is no fault: it fails, its result is that of the
// correct query it was made of, or it is as good as gold. The reason is "" for a
// fault. The difference must be there by the benchmark's rule and for whoever
// runs the queries as they are written: the rule test-suite strips DISTINCT, and
// what then differs may be the same rows with it.
func (e *executor) judgeMutant(ctx context.Context, correct, mutant string, original *sqlexec.Result) (Reason, error) {
	result, err := e.judged(ctx, mutant)
	if err != nil {
		if cause, failed := failure(err); failed {
			return Reason(cause), nil
		}
		return "", err
	}
	for _, other := range []struct {
		text   string
		result *sqlexec.Result
		reason Reason
	}{{correct, original, SameResult}, {e.gold, e.expected, StillCorrect}} {
		isSame := e.rule.Same(other.result, result, other.text)
		if !isSame {
			if isSame, err = e.looksSame(ctx, other.text, mutant); err != nil {
				return "", err
			}
		}
		if isSame {
			return other.reason, nil
		}
	}
	return "", nil
}

// looksSame reports that two queries that the rule tells apart give the same
// result as they are written. Where the rule runs them as written, they do not.
func (e *executor) looksSame(ctx context.Context, a, b string) (bool, error) {
	if e.rule.Rewrite(a) == a && e.rule.Rewrite(b) == b {
		return false, nil
	}
	var results [2]*sqlexec.Result
	for i, text := range [2]string{a, b} {
		var err error
		if results[i], err = e.result(ctx, text); err != nil {
			if _, failed := failure(err); failed {
				return false, nil
			}
			return false, err
		}
	}
	return sqlexec.Strict.Same(results[0], results[1], a), nil
}

// draws hands out a query's mutations in random order without repetition.
type draws struct {
	random *rand.Rand
	// own and foreign hold the clause kinds in canonical order of first
	// appearance, each with its operators and each of these with its mutations.
	own, foreign []*stratum
	perClause    int
	accepted     map[*sql.Node]int
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
	strata := &d.own
	if m.isForeign {
		strata = &d.foreign
	}
	i := slices.IndexFunc(*strata, func(s *stratum) bool { return s.kind == kind })
	if i < 0 {
		i = len(*strata)
		*strata = append(*strata, &stratum{kind: kind})
	}
	s := (*strata)[i]
	j := slices.IndexFunc(s.operators, func(w *drawer) bool { return w.name == m.operator })
	if j < 0 {
		j = len(s.operators)
		s.operators = append(s.operators, &drawer{name: m.operator})
	}
	s.operators[j].mutations = append(s.operators[j].mutations, m)
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

// from draws from the strata: a clause kind, then an operator, then a mutation.
func (d *draws) from(strata *[]*stratum) (mutation, bool) {
	for len(*strata) > 0 {
		i := d.random.IntN(len(*strata))
		s := (*strata)[i]
		j := d.random.IntN(len(s.operators))
		w := s.operators[j]
		k := d.random.IntN(len(w.mutations))
		m := w.mutations[k]
		w.mutations = slices.Delete(w.mutations, k, k+1)
		if len(w.mutations) == 0 {
			s.operators = slices.Delete(s.operators, j, j+1)
		}
		if len(s.operators) == 0 {
			*strata = slices.Delete(*strata, i, i+1)
		}
		if d.accepted[m.clause()] < d.perClause {
			return m, true
		}
	}
	return mutation{}, false
}

// accept counts an accepted mutation against its clause.
func (d *draws) accept(m mutation) { d.accepted[m.clause()]++ }
