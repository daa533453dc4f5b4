package sqlexec

// #include "wire.h"
import "C"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	_ "github.com/mattn/go-sqlite3" // compiles SQLite into the program
)

// worker is a process that runs queries (worker.c); one goroutine at a time may
// use it. After an error other than the query's own it has to be stopped.
type worker struct {
	process *exec.Cmd
	socket  int // blocking: on a round trip of microseconds Go's poller would be felt
	buf     []byte
	timeout time.Duration // of reading from the socket, as it is set now
}

// job is one query for a worker.
type job struct {
	database int64 // equal numbers name the same file
	uri, sql string
	limits   Limits
	trusted  bool // a query of our own, which may read pragma table functions
}

// outcome is how a query ended, as the worker says it.
type outcome struct {
	reply   C.reply
	message string
	cells   []byte
}

// grace is what a query may take beyond its time limit until its worker is killed.
// SQLite looks at the clock between instructions, so few come that far.
const grace = 200 * time.Millisecond

var (
	errLost = errors.New("the worker process ended")
	errLate = errors.New("the worker process does not answer")
)

func startWorker() (*worker, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket of a worker process: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "worker")
	defer theirs.Close()
	process := &exec.Cmd{
		Path:       "/proc/self/exe", // also when the file was replaced meanwhile
		Args:       []string{"caper-sql-worker"},
		Env:        []string{"CAPER_SQL_WORKER=1"},
		ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{
			Pdeathsig: syscall.SIGKILL,
			Setpgid:   true, // ctrl-C is for the program, which ends its workers itself
		},
	}
	if err := process.Start(); err != nil {
		syscall.Close(pair[0])
		return nil, fmt.Errorf("start a worker process: %w", err)
	}
	return &worker{process: process, socket: pair[0], buf: make([]byte, C.MAX_REQUEST_BYTES)}, nil
}

// stop kills the process and says how it had ended, if it had.
func (w *worker) stop() *os.ProcessState {
	w.kill()
	syscall.Close(w.socket)
	w.process.Wait()
	return w.process.ProcessState
}

func (w *worker) kill() { w.process.Process.Kill() }

// run asks for one query. The error is errLost, errLate or ctx's.
func (w *worker) run(ctx context.Context, j job) (out *outcome, err error) {
	if ctx.Done() != nil {
		forget := context.AfterFunc(ctx, w.kill)
		defer func() {
			if !forget() {
				out, err = nil, ctx.Err()
			}
		}()
	}
	late := time.Now().Add(j.limits.Timeout + grace)
	if err := w.waitAtMost(j.limits.Timeout + grace); err != nil {
		return nil, err
	}
	if err := w.send(j); err != nil {
		return nil, err
	}
	return w.receive(late)
}

func (w *worker) send(j job) error {
	head := C.request{
		database: C.int64_t(j.database),
		limits: C.bounds{
			timeout_ns: C.int64_t(j.limits.Timeout),
			rows:       C.int64_t(j.limits.Rows),
			bytes:      C.int64_t(j.limits.Bytes),
		},
		uri_bytes: C.int32_t(len(j.uri)),
		sql_bytes: C.int32_t(len(j.sql)),
	}
	if j.trusted {
		head.trusted = 1
	}
	text := append(w.buf[:0], unsafe.Slice((*byte)(unsafe.Pointer(&head)), unsafe.Sizeof(head))...)
	text = append(append(text, j.uri...), 0)
	text = append(append(text, j.sql...), 0)
	for len(text) > 0 {
		n, err := syscall.Write(w.socket, text)
		if err != nil && err != syscall.EINTR {
			return errLost
		}
		text = text[max(n, 0):]
	}
	return nil
}

func (w *worker) receive(late time.Time) (*outcome, error) {
	out := &outcome{}
	head := unsafe.Slice((*byte)(unsafe.Pointer(&out.reply)), unsafe.Sizeof(out.reply))
	got := 0
	for got < len(head) {
		n, err := w.read(w.buf[got:], late)
		if err != nil {
			return nil, err
		}
		got += n
	}
	copy(head, w.buf)
	rest := w.buf[len(head):got]
	// A short reply came whole; its bytes move, for the buffer is used again.
	want := int(out.reply.message_bytes + out.reply.cells_bytes)
	if len(rest) == want {
		rest = bytes.Clone(rest)
	} else {
		rest = append(make([]byte, 0, want), rest...)
	}
	for len(rest) < want {
		n, err := w.read(rest[len(rest):want], late)
		if err != nil {
			return nil, err
		}
		rest = rest[:len(rest)+n]
	}
	out.message, out.cells = string(rest[:out.reply.message_bytes]), rest[out.reply.message_bytes:]
	return out, nil
}

// read reads some bytes, at least one.
func (w *worker) read(into []byte, late time.Time) (int, error) {
	for {
		n, err := syscall.Read(w.socket, into)
		switch {
		case n > 0:
			return n, nil
		case err != syscall.EINTR && err != syscall.EAGAIN:
			return 0, errLost
		}
		left := time.Until(late)
		if left <= 0 {
			return 0, errLate
		}
		if err := w.waitAtMost(left); err != nil {
			return 0, err
		}
	}
}

// waitAtMost sets how long a read may take.
func (w *worker) waitAtMost(d time.Duration) error {
	if w.timeout == d {
		return nil
	}
	w.timeout = d
	t := syscall.NsecToTimeval(int64(max(d, time.Millisecond))) // zero would be for ever
	if err := syscall.SetsockoptTimeval(w.socket, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &t); err != nil {
		return errLost
	}
	return nil
}
