package fill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"caper/data"
	"caper/sql"
	"caper/sqlexec"
)

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
