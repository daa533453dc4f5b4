package sqlexec

/*
#include <stdlib.h>
#include "session.h"
#include "sqlite_api.h"
*/
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	_ "github.com/mattn/go-sqlite3" // compiles SQLite into the program
)

// session is one connection; one goroutine at a time may use it.
type session struct{ c *C.session }

func openSession(uri string) (*session, error) {
	text := C.CString(uri)
	defer C.free(unsafe.Pointer(text))
	var message *C.char
	c := C.session_open(text, maxCellBytes, maxQueryBytes, &message)
	if c == nil {
		defer C.free(unsafe.Pointer(message))
		return nil, errors.New(C.GoString(message))
	}
	return &session{c}, nil
}

func (s *session) close() { C.session_close(s.c) }

// run runs one statement to its end; trusted is for our own queries about the
// schema. The error is an *Error, ctx's, or a plain one when the file is at fault.
func (s *session) run(ctx context.Context, query string, l Limits, trusted bool) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkText(query); err != nil {
		return nil, err
	}
	defer s.watch(ctx)()

	text := C.CString(query)
	defer C.free(unsafe.Pointer(text))
	var own C.int
	if trusted {
		own = 1
	}
	b := C.bounds{
		timeout_ns: C.int64_t(l.Timeout),
		rows:       C.int64_t(l.Rows),
		bytes:      C.int64_t(l.Bytes),
	}
	var out C.outcome
	start := time.Now()
	C.session_run(s.c, text, C.int(len(query)), own, b, &out)
	elapsed := time.Since(start)
	defer C.outcome_free(&out)

	if out.end != C.OUTCOME_DONE {
		return nil, failure(ctx, &out, l)
	}
	r := unpack(&out)
	r.Elapsed = elapsed
	return r, nil
}

// watch carries the end of ctx to the running query. The function it returns
// ends the watch, and waits for a cancel under way, so that none can reach the
// session's next query.
func (s *session) watch(ctx context.Context) (stop func()) {
	flag := (*int32)(unsafe.Pointer(&s.c.cancelled))
	atomic.StoreInt32(flag, 0)
	if ctx.Done() == nil {
		return func() {}
	}
	done := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		atomic.StoreInt32(flag, 1)
		close(done)
	})
	return func() {
		if !forget() {
			<-done
		}
	}
}

// unpack turns the packed cells into Go values. Texts and blobs share one copy
// of the buffer, all rows one slice of cells.
func unpack(out *C.outcome) *Result {
	p := unpacker{buf: C.GoBytes(unsafe.Pointer(out.cells), C.int(out.size))}
	columns, rows := int(out.columns), int(out.rows)
	r := &Result{
		Columns:   make([]string, columns),
		Rows:      make([][]Value, rows),
		Truncated: out.truncated != 0,
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
