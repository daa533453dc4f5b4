package fill

import (
	"context"
	"errors"

	"caper/sqlexec"
)

// rounds is how often the queries that find nothing get witnesses: one query's
// rows may take away what another found.
const rounds = 3

// repair stores witnesses for the gold queries that find nothing.
func (d *database) repair(ctx context.Context, j task, queries []*query) error {
	for range rounds {
		witnesses, runnable, err := j.witnesses(ctx, queries)
		if err != nil || len(witnesses) == 0 {
			return err
		}
		err = d.transaction(j.random, func() error {
			for _, w := range witnesses {
				if err := w.store(d); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		queries = runnable
	}
	return nil
}

// attempts is how many witnesses are tried until the values of one fit.
const attempts = 4

// witnesses solves a witness for each query that finds nothing in the file as it
// is, and lists the queries that run at all. The file is open for reading only
// meanwhile.
func (j task) witnesses(ctx context.Context, queries []*query) (found []*witness, runnable []*query, err error) {
	reader, err := sqlexec.Open(j.path, j.limits)
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	value := func(text string) (any, bool) {
		result, err := reader.Query(ctx, text)
		if err != nil || len(result.Rows) == 0 {
			return nil, false
		}
		return result.Rows[0][0], true
	}
	for _, q := range queries {
		result, err := reader.Query(ctx, q.text)
		if errors.As(err, new(*sqlexec.Error)) {
			continue
		} else if err != nil {
			return nil, nil, err
		}
		runnable = append(runnable, q)
		if !isHollow(result) {
			continue
		}
		for range attempts {
			if w := newWitness(q, j.random, value); w.solve() {
				found = append(found, w)
				break
			}
		}
	}
	return found, runnable, nil
}

// isHollow reports that a result says nothing: no row, or the single row of an
// aggregate over none.
func isHollow(result *sqlexec.Result) bool {
	if len(result.Rows) > 1 {
		return false
	}
	for _, row := range result.Rows {
		for _, v := range row {
			if v != nil && v != int64(0) && v != 0.0 {
				return false
			}
		}
	}
	return true
}
