package sqlexec

// #include "wire.h"
// #include "sqlite_api.h"
import "C"

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/mattn/go-sqlite3"
)

// origin is what the results of a database depend on beside the query.
type origin struct {
	sum [sha256.Size]byte
	// fixed says that they depend on nothing else.
	fixed bool
}

// key names the result of a query by everything that it depends on: the content of
// the database's file, the limits, SQLite's version, the layout of the records and
// the query. There is no key where it depends on the clock or on chance as well.
func (c *DiskCache) key(d *Database, query string) (key diskKey, ok bool) {
	known, ok := c.origins.Load(d.identity)
	if !ok {
		known, _ = c.origins.LoadOrStore(d.identity, sync.OnceValue(func() origin { return originOf(d) }))
	}
	o := known.(func() origin)()
	if !o.fixed || volatile.MatchString(query) {
		return key, false
	}
	h := sha256.New()
	h.Write(o.sum[:])
	io.WriteString(h, query)
	copy(key[:], h.Sum(nil))
	return key, true
}

// layoutOfRecords is part of every key: records of another layout are not found.
const layoutOfRecords = 1

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
	fmt.Fprintf(h, "%d\n%s\n%+v\n", layoutOfRecords, source, d.limits)
	if _, err := io.Copy(h, f); err != nil {
		return o
	}
	h.Sum(o.sum[:0])
	views, err := d.Query(context.Background(), "SELECT sql FROM sqlite_schema WHERE type = 'view'")
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

// Kinds of records.
const (
	recordResult  = 'r'
	recordFailure = 'f'
)

// packed is the outcome of a query as a record; none where it should not last.
func packed(r *Result, err error) []byte {
	var failed *Error
	switch {
	case err == nil:
		return packedResult(r)
	case errors.As(err, &failed) && lasting(failed.Failure):
		record := append([]byte{recordFailure, byte(len(failed.Failure))}, failed.Failure...)
		return append(record, failed.Message...)
	}
	return nil
}

// packedResult is a few numbers, then the cells as a worker sends them.
func packedResult(r *Result) []byte {
	record := append(make([]byte, 0, packedSize(r)), recordResult, 0)
	if r.Truncated {
		record[1] = 1
	}
	record = binary.LittleEndian.AppendUint32(record, uint32(len(r.Columns)))
	record = binary.LittleEndian.AppendUint64(record, uint64(len(r.Rows)))
	record = binary.LittleEndian.AppendUint64(record, uint64(r.Elapsed))
	for _, name := range r.Columns {
		record = appendCell(record, name)
	}
	for _, row := range r.Rows {
		for _, v := range row {
			record = appendCell(record, v)
		}
	}
	return record
}

const resultHeader = 2 + 4 + 8 + 8

// packedSize is the length of packedResult.
func packedSize(r *Result) int {
	const number, length = 1 + 8, 1 + 4
	n := resultHeader
	for _, name := range r.Columns {
		n += length + len(name)
	}
	for _, row := range r.Rows {
		for _, v := range row {
			switch v := v.(type) {
			case int64, float64:
				n += number
			case string:
				n += length + len(v)
			case []byte:
				n += length + len(v)
			default:
				n++
			}
		}
	}
	return n
}

func appendCell(record []byte, v Value) []byte {
	switch v := v.(type) {
	case int64:
		return binary.LittleEndian.AppendUint64(append(record, C.SQLITE_INTEGER), uint64(v))
	case float64:
		return binary.LittleEndian.AppendUint64(append(record, C.SQLITE_FLOAT), math.Float64bits(v))
	case string:
		record = binary.LittleEndian.AppendUint32(append(record, C.SQLITE_TEXT), uint32(len(v)))
		return append(record, v...)
	case []byte:
		record = binary.LittleEndian.AppendUint32(append(record, C.SQLITE_BLOB), uint32(len(v)))
		return append(record, v...)
	}
	return append(record, C.SQLITE_NULL)
}

// unpacked is the outcome that a record holds. The record has passed its checksum.
func unpacked(record []byte) (*Result, error) {
	if record[0] == recordFailure {
		text := record[2:]
		n := record[1]
		return nil, &Error{Failure(text[:n]), string(text[n:])}
	}
	var o outcome
	o.reply.truncated = C.int32_t(record[1])
	o.reply.columns = C.int32_t(binary.LittleEndian.Uint32(record[2:]))
	o.reply.rows = C.int64_t(binary.LittleEndian.Uint64(record[6:]))
	o.cells = record[resultHeader:]
	r := o.result()
	r.Elapsed = time.Duration(binary.LittleEndian.Uint64(record[14:]))
	return r, nil
}
