package sqlexec

import (
	"context"
	"errors"
	"time"
)

// Limits bounds what one query may use.
type Limits struct {
	// Timeout is the wall time that one query may run.
	Timeout time.Duration
	// Rows is the number of rows kept; a longer result is Truncated.
	Rows int
	// Bytes bounds the size of a result; a larger one is a Memory failure.
	Bytes int
}

// DefaultLimits returns the limits of training and evaluation: 5 seconds.
func DefaultLimits() Limits {
	return Limits{Timeout: 5 * time.Second, Rows: 1_000_000, Bytes: 64 << 20}
}

// Database is one SQLite file, open read-only. It is safe for concurrent use.
type Database struct {
	path   string
	limits Limits
}

// Open opens the SQLite file at path for reading.
func Open(path string, l Limits) (*Database, error) {
	return nil, errors.New("sqlexec: not built yet")
}

// Close frees the connections. Queries must have returned.
func (d *Database) Close() error { return nil }

// Query runs one SELECT, VALUES or WITH statement. What the query itself caused
// is an *Error; the end of ctx is ctx's error.
func (d *Database) Query(ctx context.Context, query string) (*Result, error) {
	return nil, errors.New("sqlexec: not built yet")
}
