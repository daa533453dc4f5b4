package fill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"caper/data"
	"caper/sql"
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

// source is what a database is copied to and from.
type source struct {
	id, to    string
	from      string      // "": it is made as described
	described *sql.Schema // nil: it is not
	fault     error       // why SQLite cannot read the schema of the file
}

// findSource takes the benchmark's own file, else the one in the folder of empty
// databases, else the description of the schema.
func findSource(bench *data.Benchmark, work, id string, o Options) (source, error) {
	if filepath.Base(id) != id || id == "." || id == ".." {
		return source{}, errors.New("not the name of a database")
	}
	s := source{id: id, to: filepath.Join(work, "database", id, id+".sqlite")}
	described, err := bench.Schema(id)
	switch {
	case errors.As(err, new(*sqlexec.Error)):
		s.fault = err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return source{}, err
	}
	s.described = described
	folder := o.Databases
	if folder == "" {
		folder = filepath.Join(bench.Dir, "database_schema_only")
	}
	empty := filepath.Join(folder, id, id+".sqlite")
	for _, from := range []string{bench.DatabasePath(id), empty} {
		reader, err := sqlexec.Open(from, bench.Limits)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return source{}, err
		}
		reader.Close() // it is a database at rest
		s.from = from
		return s, nil
	}
	if described == nil {
		return source{}, fmt.Errorf("no file at %s or %s, and no tables file describes it", bench.DatabasePath(id), empty)
	}
	return s, nil
}

// write copies a database, fills the copy and runs the gold queries on it.
func (s source) write(ctx context.Context, bench *data.Benchmark, golds []string, o Options) (Summary, error) {
	if err := s.copy(); err != nil {
		return Summary{}, err
	}
	sum := Summary{Questions: len(golds)}
	done, err := s.fill(ctx, bench, golds, o)
	switch {
	case err != nil && (ctx.Err() != nil || !isOwnFault(err)):
		return Summary{}, err
	case err != nil:
		if err := s.copy(); err != nil {
			return Summary{}, err
		}
		done = filled{}
		sum.Refused = append(sum.Refused, fmt.Sprintf("%s: %s is copied as it is: %v",
			s.id, cmp.Or(s.from, "the database as described"), withoutPath(err)))
	case done.unchanged:
		sum.Unchanged = 1
	}
	sum.Rows = done.rows
	for _, refused := range done.refused {
		sum.Refused = append(sum.Refused, fmt.Sprintf("%s: %v", s.id, refused))
	}
	return sum, sum.judge(ctx, s.to, golds, bench.Limits)
}

// fill puts rows into the copy.
func (s source) fill(ctx context.Context, bench *data.Benchmark, golds []string, o Options) (filled, error) {
	if s.fault != nil {
		return filled{}, s.fault
	}
	var keys []sql.ForeignKey
	if s.described != nil {
		keys = s.described.ForeignKeys
	}
	return task{s.to, golds, keys, o.Rows, randomFor(o.Seed, s.id), bench.Limits}.run(ctx)
}

// copy makes the copy, or makes it anew.
func (s source) copy() error {
	if err := os.MkdirAll(filepath.Dir(s.to), 0o755); err != nil {
		return err
	}
	if s.from == "" {
		os.Remove(s.to)
		return create(s.to, s.described)
	}
	return copyFile(s.from, s.to)
}

// isOwnFault reports an error that lies in the database, not in the machine.
func isOwnFault(err error) bool {
	var refused sqlite3.Error
	if errors.As(err, &refused) {
		machine := []sqlite3.ErrNo{sqlite3.ErrFull, sqlite3.ErrIoErr, sqlite3.ErrNomem, sqlite3.ErrCantOpen}
		return !slices.Contains(machine, refused.Code)
	}
	return !errors.As(err, new(syscall.Errno))
}

// withoutPath leaves out the name of the copy, which nobody will see again.
func withoutPath(err error) error {
	var file *sqlexec.FileError
	if errors.As(err, &file) {
		return file.Err
	}
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
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
