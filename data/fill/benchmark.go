package fill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"caper/data"
	"caper/sqlexec"
)

// Options say what to fill and how. The same Options give the same bytes.
type Options struct {
	Seed uint64
	// Rows of each empty table, before witnesses; 1 to MaxRows.
	Rows int
	// Split is the one whose questions make the new benchmark, with their databases.
	Split string
	// Databases is a folder of ID/ID.sqlite for databases that the benchmark's own
	// folder lacks; "" is its database_schema_only.
	Databases string
}

// DefaultOptions is 40 rows a table for the split train.
func DefaultOptions() Options {
	return Options{Seed: 1, Rows: 40, Split: "train"}
}

// MaxRows bounds Options.Rows; a table's rows are kept in memory.
const MaxRows = 1000

// Summary counts what Write wrote.
type Summary struct {
	Databases int `json:"databases"`
	// Unchanged databases have rows in every table.
	Unchanged int `json:"unchanged"`
	// Rows put in.
	Rows      int `json:"rows"`
	Questions int `json:"questions"`
	// Returning questions have a gold query that returns rows, and no more than the
	// benchmark's limits allow, Informative ones more
	// than the single row of nothing but NULL and 0 that an aggregate over no rows is.
	Returning   int `json:"returning"`
	Informative int `json:"informative"`
	// GoldErrors is the number of gold queries that fail or pass the limits.
	GoldErrors int `json:"gold_errors"`
	// Refused names the tables that stay empty, with the constraint that no row
	// satisfied, and the databases copied as they are, because SQLite cannot read or
	// write them here: with virtual tables of a module that it lacks, say.
	Refused []string `json:"refused"`
}

// Write writes a filled copy of a benchmark's split to the folder dir, which must
// not exist yet or be empty: the questions, the descriptions of schemas, the
// databases, and rollouts/SPLIT.jsonl, the gold queries as candidates. Tables with
// rows keep these and get no more. The benchmark itself is only read. When ctx ends
// before, there is no folder.
func Write(ctx context.Context, bench *data.Benchmark, dir string, o Options) (Summary, error) {
	if o.Rows < 1 || o.Rows > MaxRows {
		return Summary{}, fmt.Errorf("fill: %d rows a table: want 1 to %d", o.Rows, MaxRows)
	}
	var s Summary
	err := data.WriteFolder(dir, func(work string) (err error) {
		s, err = write(ctx, bench, work, o)
		return err
	})
	if err != nil {
		return Summary{}, fmt.Errorf("fill: %w", err)
	}
	return s, nil
}

func write(ctx context.Context, bench *data.Benchmark, work string, o Options) (Summary, error) {
	questions, err := bench.Questions(o.Split)
	if err != nil {
		return Summary{}, err
	}
	for _, file := range bench.Files(o.Split) {
		if err := copyFile(file, filepath.Join(work, filepath.Base(file))); err != nil {
			return Summary{}, err
		}
	}
	if err := writeGold(work, o.Split, questions); err != nil {
		return Summary{}, err
	}
	golds := map[string][]string{} // by database
	for _, q := range questions {
		golds[q.DBID] = append(golds[q.DBID], q.Gold)
	}
	ids := slices.Sorted(maps.Keys(golds))
	sources := make([]source, len(ids))
	for i, id := range ids { // all of them, before the work on the first begins
		if sources[i], err = findSource(bench, work, id, o); err != nil {
			return Summary{}, fmt.Errorf("database %s: %w", id, err)
		}
	}
	parts := make([]Summary, len(ids))
	err = inParallel(len(ids), func(i int) (err error) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if parts[i], err = sources[i].write(ctx, bench, golds[ids[i]], o); err != nil {
			err = fmt.Errorf("database %s: %w", ids[i], err)
		}
		return err
	})
	return total(parts), err
}

// writeGold writes the gold queries as candidates, which annotation mutates.
func writeGold(work, split string, questions []data.Question) error {
	folder := filepath.Join(work, "rollouts")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return data.WriteRollouts(filepath.Join(folder, split+".jsonl"), func(yield func(data.Rollout) bool) {
		for _, q := range questions {
			r := data.Rollout{
				Dataset: q.Dataset, QuestionID: q.ID, DBID: q.DBID, Question: q.Question, Evidence: q.Evidence,
				Gold: q.Gold, SQL: q.Gold, Source: "gold",
			}
			if !yield(r) {
				return
			}
		}
	})
}

func total(parts []Summary) Summary {
	s := Summary{Databases: len(parts), Refused: []string{}}
	for _, p := range parts {
		s.Unchanged += p.Unchanged
		s.Rows += p.Rows
		s.Questions += p.Questions
		s.Returning += p.Returning
		s.Informative += p.Informative
		s.GoldErrors += p.GoldErrors
		s.Refused = append(s.Refused, p.Refused...)
	}
	return s
}

// judge runs the gold queries on the filled database.
func (s *Summary) judge(ctx context.Context, path string, golds []string, limits sqlexec.Limits) error {
	reader, err := sqlexec.Open(path, limits)
	if err != nil {
		return err
	}
	defer reader.Close()
	for _, gold := range golds {
		result, err := reader.Query(ctx, gold)
		switch {
		case errors.As(err, new(*sqlexec.Error)):
			s.GoldErrors++
		case err != nil:
			return err
		case result.Truncated:
			s.GoldErrors++
		case len(result.Rows) > 0:
			s.Returning++
			if !isHollow(result) {
				s.Informative++
			}
		}
	}
	return nil
}

// inParallel runs work(0) to work(n-1), as many at once as there are processors,
// and returns the error of the smallest index.
func inParallel(n int, work func(i int) error) error {
	errs := make([]error, n)
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			errs[i] = work(i)
			<-turns
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
