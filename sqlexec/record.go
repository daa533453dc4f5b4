package sqlexec

// #include "wire.h"
// #include "sqlite_api.h"
import "C"

import (
	"bytes"
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// Record is a Result as bytes: a few numbers, then the cells as a worker sends them,
// the names of the columns ahead of the rows. So results are kept and compared: a
// million cells as values would be a million objects for the garbage collector.
type Record []byte

// Where a record's numbers lie.
const (
	recordKind      = 0
	recordTruncated = 1
	recordColumns   = 2
	recordRows      = 6
	recordElapsed   = 14
	recordHeader    = 22
)

// kindResult is the first byte of a record. On disk other things have others.
const kindResult = 'r'

// writeHeader makes a record of an outcome whose cells stand in it already.
func (r Record) writeHeader(head C.reply) {
	r[recordKind] = kindResult
	r[recordTruncated] = byte(head.truncated)
	binary.LittleEndian.PutUint32(r[recordColumns:], uint32(head.columns))
	binary.LittleEndian.PutUint64(r[recordRows:], uint64(head.rows))
	binary.LittleEndian.PutUint64(r[recordElapsed:], uint64(head.elapsed_ns))
}

func (r Record) columns() int { return int(binary.LittleEndian.Uint32(r[recordColumns:])) }

// Rows is the number of rows.
func (r Record) Rows() int { return int(binary.LittleEndian.Uint64(r[recordRows:])) }

// Elapsed is the time that the query ran.
func (r Record) Elapsed() time.Duration {
	return time.Duration(binary.LittleEndian.Uint64(r[recordElapsed:]))
}

// table is the bytes of the rows.
func (r Record) table() []byte {
	rest := r[recordHeader:]
	for range r.columns() { // a name is a text: its type, its length, its bytes
		rest = rest[1+4+binary.LittleEndian.Uint32(rest[1:]):]
	}
	return rest
}

// isEqual reports that two records hold the same cells in the same places. The names
// of columns do not count.
func (r Record) isEqual(s Record) bool {
	return r[recordTruncated] == s[recordTruncated] && r.columns() == s.columns() && r.Rows() == s.Rows() &&
		bytes.Equal(r.table(), s.table())
}

// Result unpacks the record. Texts and blobs stay in its bytes; all rows share one
// slice of cells.
func (r Record) Result() *Result {
	p := unpacker{buf: r[recordHeader:]}
	columns, rows := r.columns(), r.Rows()
	result := &Result{
		Columns:   make([]string, columns),
		Rows:      make([][]Value, rows),
		Truncated: r[recordTruncated] != 0,
		Elapsed:   r.Elapsed(),
	}
	for i := range result.Columns {
		result.Columns[i] = p.next().(string)
	}
	cells := make([]Value, rows*columns)
	for i := range cells {
		cells[i] = p.next()
	}
	for i := range result.Rows {
		result.Rows[i] = cells[i*columns : (i+1)*columns : (i+1)*columns]
	}
	return result
}

type unpacker struct{ buf []byte }

func (p *unpacker) next() Value {
	kind := p.take(1)[0]
	switch kind {
	case C.SQLITE_INTEGER:
		return int64(binary.LittleEndian.Uint64(p.take(8)))
	case C.SQLITE_FLOAT:
		return math.Float64frombits(binary.LittleEndian.Uint64(p.take(8)))
	case C.SQLITE_TEXT:
		bytes := p.take(int(binary.LittleEndian.Uint32(p.take(4))))
		return unsafe.String(unsafe.SliceData(bytes), len(bytes))
	case C.SQLITE_BLOB:
		return p.take(int(binary.LittleEndian.Uint32(p.take(4))))
	}
	return nil
}

func (p *unpacker) take(n int) []byte {
	head := p.buf[:n:n]
	p.buf = p.buf[n:]
	return head
}
