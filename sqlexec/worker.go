package sqlexec

// #include "wire.h"
import "C"

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	_ "github.com/mattn/go-sqlite3" // compiles SQLite into the program
)

// worker is a process that runs queries (worker.c); one goroutine at a time may
// use it. After an error of run it has to be stopped.
type worker struct {
	process  *exec.Cmd
	requests *os.File
	replies  *os.File
	reader   *bufio.Reader // of replies
	buf      []byte        // holds requests
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
	record  Record // where it ran to its end
}

// errLost says that the process ended before it replied.
var errLost = errors.New("the worker process ended")

// grace is what a query may take beyond its time limit until its worker is killed.
// SQLite looks at the clock between instructions, so few come that far.
const grace = 200 * time.Millisecond

func startWorker() (*worker, error) {
	stdin, requests, err := blockingPipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	replies, stdout, err := blockingPipe()
	if err != nil {
		requests.Close()
		return nil, err
	}
	defer stdout.Close()
	w := &worker{requests: requests, replies: replies, reader: bufio.NewReaderSize(replies, replyBuffer)}
	w.process = &exec.Cmd{
		Path:   "/proc/self/exe", // also when the file was replaced meanwhile
		Args:   []string{"caper-sql-worker"},
		Env:    []string{"CAPER_SQL_WORKER=1"},
		Stdin:  stdin,
		Stdout: stdout,
		SysProcAttr: &syscall.SysProcAttr{
			Pdeathsig: syscall.SIGKILL, // with the thread that starts it, and Go keeps those
			Setpgid:   true,            // ctrl-C is for the program, which ends its workers itself
		},
	}
	if err := w.process.Start(); err != nil {
		w.closePipes()
		return nil, fmt.Errorf("start a worker process: %w", err)
	}
	return w, nil
}

// blockingPipe makes a pipe that Go's poller does not watch: on a round trip of
// microseconds it would be felt.
func blockingPipe() (read, write *os.File, err error) {
	var fd [2]int
	if err := syscall.Pipe2(fd[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("pipe to a worker process: %w", err)
	}
	return os.NewFile(uintptr(fd[0]), "worker"), os.NewFile(uintptr(fd[1]), "worker"), nil
}

// stop kills the process and says how it ended, which may have been earlier.
func (w *worker) stop() *os.ProcessState {
	w.kill()
	w.closePipes()
	w.process.Wait()
	return w.process.ProcessState
}

func (w *worker) kill() { w.process.Process.Kill() }

func (w *worker) closePipes() {
	w.requests.Close()
	w.replies.Close()
}

// run asks for queries and waits for all of them, for the time that one of them may
// take. The error is an *Error of a query that was killed at its deadline, ctx's, or
// errLost.
func (w *worker) run(ctx context.Context, jobs []job) (out []outcome, err error) {
	if ctx.Done() != nil {
		forget := context.AfterFunc(ctx, w.kill)
		defer func() {
			if !forget() {
				out, err = nil, ctx.Err()
			}
		}()
	}
	limits := jobs[0].limits
	watchdog := time.AfterFunc(limits.Timeout+grace, w.kill)
	out, err = w.exchange(jobs)
	if inTime := watchdog.Stop(); !inTime {
		return nil, timeout(limits)
	}
	if err != nil {
		return nil, errLost
	}
	return out, nil
}

// replyBuffer is room for the replies to several short queries, which so take one
// look into the pipe.
const replyBuffer = 32 << 10

// exchange writes all requests ahead of the first reply. Of several the pipe has to
// hold what the worker does not yet read (maxBatchBytes).
func (w *worker) exchange(jobs []job) ([]outcome, error) {
	w.buf = w.buf[:0]
	for _, j := range jobs {
		w.buf = appendRequest(w.buf, j)
	}
	if _, err := w.requests.Write(w.buf); err != nil {
		return nil, err
	}
	out := make([]outcome, len(jobs))
	for i := range out {
		if err := w.read(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// read reads one reply.
func (w *worker) read(out *outcome) error {
	head := &out.reply
	if _, err := io.ReadFull(w.reader, unsafe.Slice((*byte)(unsafe.Pointer(head)), unsafe.Sizeof(*head))); err != nil {
		return err
	}
	message := make([]byte, head.message_bytes)
	if _, err := io.ReadFull(w.reader, message); err != nil {
		return err
	}
	out.message = string(message)
	if !out.done() {
		return nil
	}
	out.record = make(Record, recordHeader+head.cells_bytes)
	out.record.writeHeader(*head)
	_, err := io.ReadFull(w.reader, out.record[recordHeader:])
	return err
}

// appendRequest packs a job.
func appendRequest(buf []byte, j job) []byte {
	head := C.request{
		database: C.int64_t(j.database),
		limits: C.bounds{
			timeout_ns: C.int64_t(j.limits.Timeout),
			rows:       C.int64_t(j.limits.Rows),
			bytes:      C.int64_t(j.limits.Bytes),

			instructions: C.int64_t(j.limits.Instructions),
		},
		uri_bytes: C.int32_t(len(j.uri)),
		sql_bytes: C.int32_t(len(j.sql)),
	}
	if j.trusted {
		head.trusted = 1
	}
	buf = append(buf, unsafe.Slice((*byte)(unsafe.Pointer(&head)), unsafe.Sizeof(head))...)
	buf = append(append(buf, j.uri...), 0)
	return append(append(buf, j.sql...), 0)
}
