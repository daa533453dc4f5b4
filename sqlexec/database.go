package sqlexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Limits bounds what one query may use.
type Limits struct {
	// Timeout is the wall time that one query may run.
	Timeout time.Duration
	// Rows is the number of rows kept; a longer result is Truncated.
	Rows int
	// Bytes bounds the memory of a result; a larger one is a Memory failure.
	// SQLite may use four times as much to make it.
	Bytes int
	// Instructions is how many of SQLite's machine a query may take, to the next
	// thousand; 0 is any number. Unlike the time they are the same on every machine:
	// some 100 million take a second.
	Instructions int
}

// DefaultLimits returns 5 seconds, half a million rows, 128 MiB.
func DefaultLimits() Limits {
	return Limits{Timeout: 5 * time.Second, Rows: 500_000, Bytes: 128 << 20}
}

// Database is one SQLite file, open read-only. It is safe for concurrent use: each
// query runs on a connection of its own, in one of the program's worker processes.
// The file must not change while it is open, and is never written: no journal or
// other file appears beside it.
type Database struct {
	path, uri string
	limits    Limits
	content   string // stands for what is in the file
	identity  string // of the content and the limits: two equal ones give equal results
	number    int64  // of this Database in this program
	closed    *atomic.Bool
}

var databases atomic.Int64

// check refuses limits that mean nothing, and those that would overflow.
func (l Limits) check() error {
	const maxTimeout, maxBytes = 1000 * time.Hour, 1 << 40
	if l.Timeout <= 0 || l.Rows <= 0 || l.Bytes <= 0 || l.Instructions < 0 {
		return fmt.Errorf("limits %+v: each must be positive; start from DefaultLimits()", l)
	}
	if l.Timeout > maxTimeout || l.Bytes > maxBytes {
		return fmt.Errorf("limits %+v: at most %v and %d bytes", l, maxTimeout, maxBytes)
	}
	return nil
}

// FileError says what is wrong with a database file, as opposed to a query.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("database %s: %v", e.Path, e.Err) }
func (e *FileError) Unwrap() error { return e.Err }

// Open opens the SQLite file at path. What is wrong with the file is a *FileError.
func Open(path string, l Limits) (*Database, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	d, err := open(path, l)
	if err != nil {
		return nil, &FileError{path, err}
	}
	return d, nil
}

func open(path string, l Limits) (*Database, error) {
	real, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if link, err := filepath.EvalSymlinks(real); err == nil {
		real = link
	}
	if err := checkFile(real); err != nil {
		return nil, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	d := &Database{
		path: path,
		// immutable: SQLite takes no lock, looks for no journal and creates none.
		uri:     "file:" + escapePath(real) + "?mode=ro&immutable=1",
		limits:  l,
		content: fmt.Sprintf("%s %d %d", real, info.Size(), info.ModTime().UnixNano()),
		number:  databases.Add(1),
		closed:  new(atomic.Bool),
	}
	d.identify()
	workers().use(1)
	// The first read of the schema finds a file that is damaged or cut short. The
	// limits of queries may be too narrow for it.
	if _, err := d.query(context.Background(), "SELECT count(*) FROM sqlite_schema", DefaultLimits()); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Database) identify() { d.identity = fmt.Sprint(d.content, " ", d.limits) }

// Within is the open database under other limits; Close of one closes both.
func (d *Database) Within(l Limits) (*Database, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	bounded := *d
	bounded.limits = l
	bounded.identify()
	return &bounded, nil
}

// escapePath writes a path as a URI does.
func escapePath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// checkFile refuses what is not a SQLite database at rest.
func checkFile(path string) error {
	const magic = "SQLite format 3\x00"
	// Not even opening a pipe that nobody writes to would end.
	if info, err := os.Stat(path); err != nil {
		return errors.Unwrap(err)
	} else if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer f.Close()
	head := make([]byte, len(magic))
	switch n, err := io.ReadFull(f, head); {
	case n == 0:
		return errors.New("the file is empty")
	case err != nil || string(head) != magic:
		return fmt.Errorf("not a SQLite database: it starts with %q", head[:n])
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(path + suffix); err == nil && info.Size() > 0 {
			return fmt.Errorf("%s%s holds changes that are not in the file yet: close the program that writes it, "+
				"or open and close it once with the sqlite3 shell", filepath.Base(path), suffix)
		}
	}
	return nil
}

// Path returns the path that Open was given.
func (d *Database) Path() string { return d.path }

// Limits returns the limits that Open was given.
func (d *Database) Limits() Limits { return d.limits }

// Close lets the worker processes end when no other database is open. Queries that
// still run keep theirs to their end.
func (d *Database) Close() error {
	if !d.closed.Swap(true) {
		workers().use(-1)
	}
	return nil
}

// Query runs one SELECT, VALUES or WITH statement under the limits. What the
// query itself caused is an *Error; the end of ctx is ctx's error; a fault of the
// file, or that no worker process can be started, is a *FileError.
func (d *Database) Query(ctx context.Context, query string) (*Result, error) {
	r, err := d.record(ctx, query)
	if err != nil {
		return nil, err
	}
	return r.Result(), nil
}

// record is Query's result, packed.
func (d *Database) record(ctx context.Context, query string) (Record, error) {
	r, err := d.run(ctx, query, d.limits, false)
	if err != nil && !isFailure(err) && ctx.Err() == nil {
		return nil, &FileError{d.path, err}
	}
	return r, err
}

// outcome is what a query of a batch came to.
func (d *Database) outcome(o *outcome) (Record, error) {
	if o.done() {
		return o.record, nil
	}
	err := o.failure(d.limits)
	if !isFailure(err) {
		err = &FileError{d.path, err}
	}
	return nil, err
}

// maxBatchBytes bounds the texts of a batch: they fit into a pipe.
const maxBatchBytes = 32 << 10

// batch runs queries in one round trip to a worker; several short queries spend more
// time on the way than running. It promises nothing: where something goes wrong with
// one, or they are long, it returns nothing, and each has to be run alone.
func (d *Database) batch(ctx context.Context, queries []string) []outcome {
	jobs, size := make([]job, len(queries)), 0
	for i, q := range queries {
		if checkText(q) != nil {
			return nil
		}
		jobs[i] = job{d.number, d.uri, q, d.limits, false}
		size += len(d.uri) + len(q)
	}
	if d.closed.Load() || size > maxBatchBytes {
		return nil
	}
	out, _, err := workers().try(ctx, jobs)
	if err != nil {
		return nil
	}
	return out
}

// query is a query of our own.
func (d *Database) query(ctx context.Context, query string, l Limits) (*Result, error) {
	r, err := d.run(ctx, query, l, true)
	if err != nil {
		return nil, err
	}
	return r.Result(), nil
}

func (d *Database) run(ctx context.Context, query string, l Limits, trusted bool) (Record, error) {
	if d.closed.Load() {
		return nil, errors.New("it is closed")
	}
	if err := checkText(query); err != nil {
		return nil, err
	}
	out, err := workers().run(ctx, job{d.number, d.uri, query, l, trusted})
	if err != nil {
		return nil, err
	}
	if !out.done() {
		return nil, out.failure(l)
	}
	return out.record, nil
}
