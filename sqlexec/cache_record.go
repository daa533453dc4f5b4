package sqlexec

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"

	"github.com/mattn/go-sqlite3"
)

// origin is what the results of a database depend on beside the query and its limits.
type origin struct {
	sum [sha256.Size]byte
	// fixed says that they depend on nothing else.
	fixed bool
}

// key names the result of a query by everything that it depends on: the content of
// the database's file, the limits, SQLite's version, the layout of the records and
// the query. There is no key where it depends on the clock or on chance as well.
func (c *DiskCache) key(d *Database, query string) (key diskKey, ok bool) {
	known, ok := c.origins.Load(d.content)
	if !ok {
		known, _ = c.origins.LoadOrStore(d.content, sync.OnceValue(func() origin { return originOf(d) }))
	}
	o := known.(func() origin)()
	if !o.fixed || volatile.MatchString(query) {
		return key, false
	}
	h := sha256.New()
	h.Write(o.sum[:])
	fmt.Fprintf(h, "%+v\n", d.limits)
	io.WriteString(h, query)
	copy(key[:], h.Sum(nil))
	return key, true
}

// layoutOfRecords is part of every key: records of another layout are not found.
const layoutOfRecords = 2

// originOf reads the whole file. One that cannot be read is nobody's origin: the
// query that comes next says what is wrong with it.
func originOf(d *Database) (o origin) {
	f, err := os.Open(d.path)
	if err != nil {
		return o
	}
	defer f.Close()
	h := sha256.New()
	_, _, source := sqlite3.Version()
	fmt.Fprintf(h, "%d\n%s\n", layoutOfRecords, source)
	if _, err := io.Copy(h, f); err != nil {
		return o
	}
	h.Sum(o.sum[:0])
	views, err := d.query(context.Background(), "SELECT sql FROM sqlite_schema WHERE type = 'view'", DefaultLimits())
	if err != nil {
		return o
	}
	for _, row := range views.Rows {
		if text, _ := row[0].(string); volatile.MatchString(text) {
			return o
		}
	}
	o.fixed = true
	return o
}

// volatile finds what depends on the clock, the time zone or chance; a column that
// is called so costs only its place in the cache.
var volatile = regexp.MustCompile(`(?i)\b(?:now|localtime|utc|current_date|current_time|current_timestamp|random|randomblob)\b` +
	`|\b(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)|\bstrftime\s*\(\s*'[^']*'\s*\)`)

// lasting says whether a failure is the same on every machine at every time.
func lasting(f Failure) bool { return f == Syntax || f == NoSuchName || f == NotSelect }

// kindFailure is the first byte of what stands for a result that there is none of.
const kindFailure = 'f'

// packed is the outcome of a query as bytes; none where it should not last.
func packed(r Record, err error) []byte {
	var failed *Error
	switch {
	case err == nil:
		return r
	case errors.As(err, &failed) && lasting(failed.Failure):
		record := append([]byte{kindFailure, byte(len(failed.Failure))}, failed.Failure...)
		return append(record, failed.Message...)
	}
	return nil
}

// unpacked is the outcome that bytes hold. They have passed their checksum.
func unpacked(record []byte) (Record, error) {
	if record[recordKind] == kindFailure {
		text := record[2:]
		n := record[1]
		return nil, &Error{Failure(text[:n]), string(text[n:])}
	}
	return record, nil
}
