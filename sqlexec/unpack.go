package sqlexec

// #include "session.h"
// #include "sqlite_api.h"
import "C"

import (
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// result turns the packed cells into Go values. Texts and blobs stay in the
// buffer; all rows share one slice of cells.
func (o *outcome) result() *Result {
	p := unpacker{buf: o.cells}
	columns, rows := int(o.reply.columns), int(o.reply.rows)
	r := &Result{
		Columns:   make([]string, columns),
		Rows:      make([][]Value, rows),
		Truncated: o.reply.truncated != 0,
		Elapsed:   time.Duration(o.reply.elapsed_ns),
	}
	for i := range r.Columns {
		r.Columns[i] = p.next().(string)
	}
	cells := make([]Value, rows*columns)
	for i := range cells {
		cells[i] = p.next()
	}
	for i := range r.Rows {
		r.Rows[i] = cells[i*columns : (i+1)*columns : (i+1)*columns]
	}
	return r
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
