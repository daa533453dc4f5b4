package annotate

import (
	"context"

	"caper/data"
	"caper/sqlexec"
)

// inject makes mutants of a correct query and returns their tuples: draws
// stratified by clause kind, then operator, until enough are accepted (caper.md
// 1.4.3). The last quarter of the attempts begins with foreign constructs.
func (o Options) inject(ctx context.Context, base data.Tuple, correct *statement, e *executor, out *outcome) ([]preference, error) {
	q := bind(ctx, correct, e)
	original, err := e.execute(ctx, e.candidates, correct.text)
	if err != nil {
		return nil, err
	}
	draws := o.newDraws(q, base)
	var tuples []preference
	var ahead []attempt
	for accepted, tried := 0, 0; accepted < o.Inject && tried < o.Attempts; {
		if len(ahead) == 0 {
			if ahead = o.lookAhead(ctx, draws, o.Inject-accepted, tried, e, out); len(ahead) == 0 {
				break
			}
		}
		next := ahead[0]
		ahead = ahead[1:]
		if draws.isFull(next.mutation) {
			continue // since it was drawn
		}
		tried++
		out.tried++
		reason, err := e.judgeMutant(ctx, original, next.mutant.text)
		switch {
		case err != nil:
			return nil, err
		case reason == SameResult || reason == StillCorrect,
			reason != "" && draws.random.Float64() >= o.AllowErrorShare:
			out.reject(reason)
			continue
		}
		pairs := o.pairs(base, correct, next.mutant, next.fault)
		if len(pairs) == 0 {
			out.reject(NoPair)
			continue
		}
		accepted++
		out.mutants++
		draws.accept(next.mutation)
		tuples = append(tuples, pairs...)
	}
	return tuples, nil
}

// attempt is a mutation that could be written.
type attempt struct {
	mutation
	mutant *statement
	fault  fault
}

// lookAhead draws the next attempts, as many as are needed even if all are accepted,
// and has them run at once.
func (o Options) lookAhead(ctx context.Context, d *draws, needed, tried int, e *executor, out *outcome) []attempt {
	late := o.Attempts - o.Attempts/4
	isEarly := tried < late
	if isEarly {
		needed = min(needed, late-tried)
	}
	needed = min(needed, o.Attempts-tried)
	var attempts []attempt
	var texts []string
	for len(attempts) < needed {
		m, ok := d.next(isEarly)
		if !ok {
			break
		}
		mutant, f, ok := d.query.mutate(m, o.Granularity)
		if !ok {
			out.reject(NoParse)
			continue
		}
		attempts, texts = append(attempts, attempt{m, mutant, f}), append(texts, mutant.text)
	}
	e.foresee(ctx, e.mutants, texts)
	return attempts
}

// judgeMutant says why a mutant is no fault: it fails, its result is that of the
// correct query it was made of, or it is as good as gold. The reason is "" for a
// fault. The difference must be there by the benchmark's rule and for whoever
// runs the queries as they are written: the rule test-suite strips DISTINCT, and
// what then differs may be the same rows with it.
func (e *executor) judgeMutant(ctx context.Context, original executed, text string) (Reason, error) {
	mutant, err := e.execute(ctx, e.mutants, text)
	if err != nil {
		if cause, failed := failure(err); failed {
			return Reason(cause), nil
		}
		return "", err
	}
	for _, other := range []struct {
		executed
		reason Reason
	}{{original, SameResult}, {e.gold, StillCorrect}} {
		isSame := e.rule.SameRecords(other.result, mutant.result, other.text)
		if !isSame {
			if isSame, err = e.looksSame(ctx, other.executed, mutant); err != nil {
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
// result as they are written. Where the rule runs them as written, they do not; where
// it runs them without DISTINCT, mostly their rows tell.
func (e *executor) looksSame(ctx context.Context, a, b executed) (bool, error) {
	switch {
	case a.ran == a.text && b.ran == b.text:
		return false, nil
	case a.keepsRows() && b.keepsRows() && sqlexec.SurelyOthers(a.result, b.result):
		return false, nil
	}
	var results [2]sqlexec.Record
	for i, q := range [2]executed{a, b} {
		var err error
		if results[i], err = e.result(ctx, e.mutants, q.text); err != nil {
			if _, failed := failure(err); failed {
				return false, nil
			}
			return false, err
		}
	}
	if results[0].Rows()+results[1].Rows() == 0 {
		return true, nil // the strict rule tells their numbers of columns apart, which nobody sees
	}
	return sqlexec.Strict.SameRecords(results[0], results[1], a.text), nil
}
