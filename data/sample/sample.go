// Package sample writes caper's built-in benchmark: databases, questions and
// gold SQL in Spider's layout, made from a seed and nothing else, and simulated
// rollouts that fail the way models fail.
//
// It exists so that the whole method can be seen at work on a machine without
// any download, on real executions. Three decisions shape it (each measured on
// a prototype, see the comments at their place):
//
//   - many small databases whose names come from one vocabulary, so that a
//     small model meets every word in many combinations and must read the
//     question instead of memorising a database;
//   - a question says everything its query does, in the words of the schema, so
//     that a careful reader can find the fault in a wrong query;
//   - a query is a small value (Query) from which question, SQL and faults are
//     all derived; no text is ever patched.
package sample

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"

	"caper/data"
)

// Splits of the benchmark. Train and dev share databases; test has databases
// of its own that use the same words; newwords has databases whose table,
// column and value words occur nowhere else.
const (
	Train    = "train"
	Dev      = "dev"
	Test     = "test"
	NewWords = "newwords"
)

// Splits lists all splits in the order they are written.
var Splits = []string{Train, Dev, Test, NewWords}

// Options sets the size of the benchmark. The same Options give the same bytes.
type Options struct {
	Seed uint64
	// Databases of the splits train and dev, test, and newwords.
	TrainDatabases, TestDatabases, NewWordsDatabases int
	// Questions per database. A train database also has DevQuestions.
	Questions, DevQuestions int
	// LargeEvery makes the last table of every n-th database LargeRows long.
	LargeEvery, LargeRows int
}

// DefaultOptions is the benchmark of `caper demo`.
func DefaultOptions() Options {
	return Options{
		Seed:           1,
		TrainDatabases: 260, TestDatabases: 36, NewWordsDatabases: 8,
		Questions: 24, DevQuestions: 4,
		LargeEvery: 40, LargeRows: 20000,
	}
}

// Summary counts what Write wrote.
type Summary struct {
	Databases int `json:"databases"`
	Rows      int `json:"rows"`
	// Questions by split.
	Questions map[string]int `json:"questions"`
	// Constructs counts the queries that use a construct ("left join",
	// "having", "scalar subquery", ...).
	Constructs map[string]int `json:"constructs"`
}

// Write writes the benchmark to the folder dir, which must not exist yet or be
// empty. It works in a temporary folder beside dir and renames it at the end; when
// ctx ends before, there is none.
func Write(ctx context.Context, dir string, o Options) (Summary, error) {
	if err := o.validate(); err != nil {
		return Summary{}, err
	}
	databases := designDatabases(o)
	err := data.WriteFolder(dir, func(work string) error {
		err := inParallel(len(databases), func(i int) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return databases[i].build(work, o)
		})
		if err != nil {
			return err
		}
		return writeLayout(work, databases)
	})
	if err != nil {
		return Summary{}, fmt.Errorf("sample benchmark: %w", err)
	}
	return summarise(databases), nil
}

func (o Options) validate() error {
	switch {
	case o.TrainDatabases < 1 || o.TestDatabases < 0 || o.NewWordsDatabases < 0:
		return fmt.Errorf("sample benchmark: %d train, %d test and %d newwords databases: need at least one train database and no negative number",
			o.TrainDatabases, o.TestDatabases, o.NewWordsDatabases)
	case o.Questions < 1 || o.DevQuestions < 0:
		return fmt.Errorf("sample benchmark: %d questions and %d dev questions a database: need at least one and no negative number",
			o.Questions, o.DevQuestions)
	case o.Questions+o.DevQuestions > 200:
		return fmt.Errorf("sample benchmark: %d questions a database: a small schema has no more than 200 different ones, ask for more databases",
			o.Questions+o.DevQuestions)
	case o.LargeEvery < 0 || o.LargeRows < 0:
		return fmt.Errorf("sample benchmark: large tables: every %d databases, %d rows: need no negative number", o.LargeEvery, o.LargeRows)
	}
	return nil
}

func summarise(databases []*database) Summary {
	s := Summary{Databases: len(databases), Questions: map[string]int{}, Constructs: map[string]int{}}
	for _, d := range databases {
		for _, rows := range d.rows {
			s.Rows += len(rows)
		}
		for _, e := range d.examples {
			s.Questions[e.split]++
			for name := range constructs(e.query) {
				s.Constructs[name]++
			}
		}
	}
	return s
}

// inParallel runs work(0) ... work(n-1) on all processors and returns the error
// of the smallest index, so that the outcome does not depend on timing.
func inParallel(n int, work func(i int) error) error {
	errs := make([]error, n)
	indices := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range indices {
				errs[i] = work(i)
			}
		})
	}
	for i := range n {
		indices <- i
	}
	close(indices)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// randomFor returns a generator that depends on the seed and the purpose only,
// never on the order of calls.
func randomFor(seed uint64, purpose ...string) *rand.Rand {
	h := fnv.New64a()
	for _, p := range purpose {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// pick draws one element of s, which must not be empty.
func pick[T any](r *rand.Rand, s ...T) T { return s[r.IntN(len(s))] }

// chance is true with probability p.
func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }
