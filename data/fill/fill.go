// Package fill puts synthetic rows into the empty databases of a benchmark, so
// that its gold queries return rows, and mutants of them can be told from them by
// execution.
//
// Two steps make the rows of a database. First every table gets rows at random:
// keys and foreign keys hold, and half of the values are the literals that the gold
// queries look for (domain.go, rows.go). Then every gold query that still finds
// nothing gets a witness (witness.go): a row for each table that it reads, chosen so
// that its conditions hold.
//
// A witness comes from the query's syntax tree as a small constraint problem: equal
// columns become one unknown, comparisons restrict it, and values are drawn until
// they fit (solve.go).
package fill

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"caper/sql"
	"caper/sqlexec"
)

// filled says what was done to a database.
type filled struct {
	unchanged bool // no table was empty
	rows      int
	// refused says of each table that stays empty which constraint refuses rows.
	refused []error
}

// task is a database to fill.
type task struct {
	path   string
	golds  []string
	keys   []sql.ForeignKey // foreign keys beside those that the file declares
	rows   int              // of each empty table
	random *rand.Rand
	limits sqlexec.Limits
}

// run fills the empty tables of the file so that the gold queries return rows.
func (j task) run(ctx context.Context) (done filled, err error) {
	schema, err := readSchema(j.path, j.limits)
	if err != nil {
		return done, err
	}
	d, err := openForWriting(j.path)
	if err != nil {
		return done, err
	}
	defer d.close()
	if done.unchanged = !slices.ContainsFunc(d.tables, func(t *table) bool { return !t.kept }); done.unchanged {
		return done, nil
	}
	for _, key := range j.keys {
		addReference(d.tables, key)
	}
	var queries []*query
	for _, text := range j.golds {
		if q := parse(text, schema, d.tables); q != nil {
			queries = append(queries, q)
		}
	}
	d.learn(queries, schema, j.random, j.rows)
	if err := d.dropTriggers(); err != nil {
		return done, err
	}
	if done.refused, err = d.fillTables(j.rows, j.random); err != nil {
		return done, err
	}
	if err := d.repair(ctx, j, queries); err != nil {
		return done, err
	}
	if done.rows, err = d.count(); err != nil {
		return done, err
	}
	return done, errors.Join(d.restoreTriggers(), d.close())
}

// fillTables puts rows into every empty table.
func (d *database) fillTables(rows int, r *rand.Rand) (refused []error, err error) {
	err = d.transaction(r, func() error {
		for _, t := range inOrder(d.tables) {
			if t.kept {
				continue
			}
			if err := d.fillTable(t, rows, r); err != nil {
				refused = append(refused, err)
			}
		}
		return nil
	})
	return refused, err
}

func readSchema(path string, limits sqlexec.Limits) (*sql.Schema, error) {
	reader, err := sqlexec.Open(path, limits)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return reader.Schema()
}

// learn gives every column its domain: united and taught by the queries, the CHECK
// constraints and the foreign keys.
func (d *database) learn(queries []*query, schema *sql.Schema, r *rand.Rand, rows int) {
	var columns []*column
	for _, t := range d.tables {
		for _, c := range t.columns {
			c.domain = newDomain(c)
			columns = append(columns, c)
		}
	}
	for _, t := range d.tables {
		for _, ref := range t.refs {
			for i, c := range ref.columns {
				target := ref.parent.columns[ref.target[i]]
				target.noNull = true
				unite(target, t.columns[c])
			}
		}
		for _, check := range t.checks {
			if q := parse(fmt.Sprintf("SELECT * FROM %s WHERE %s", quote(t.name), check), schema, d.tables); q != nil {
				q.observe()
			}
		}
	}
	for _, q := range queries {
		q.observe()
	}
	for _, c := range columns {
		if c.domain.parent == nil {
			c.domain.prepare(r, rows)
		}
	}
}

// randomFor returns a generator that depends on the seed and the database only.
func randomFor(seed uint64, id string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(id))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
