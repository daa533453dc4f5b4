package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"caper/data"
)

// patient is a command that saves what is done when it is interrupted, however long
// that takes.
type patient interface{ savesWhenInterrupted() }

// grace is the time that any other command gets to stop by itself. It is up when the
// command waits for a pipe, or for a computation that knows no context.
const grace = time.Second

var errInterrupted = errors.New("interrupted: nothing was written; run the same command again")

// interruptible returns a context that ends with ctrl-C and with the signals that ask
// a program to end. When the command does not stop in time, or at the second signal,
// the program ends here, and leaves no temporary file behind. A reader of our output
// that goes away ends nothing: writing to it is an error like others.
func interruptible(waits bool) (ctx context.Context, stop func()) {
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // it is under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		cancel()
		var late <-chan time.Time
		if !waits {
			late = time.After(grace)
		}
		select {
		case <-signals:
		case <-late:
		case <-done:
			return
		}
		data.RemoveTemporaries()
		complain(errors.New("interrupted before it could stop by itself; unfinished files are removed"))
		os.Exit(exitFailed)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
