package data

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
)

// blockBytes is how much of a file one worker takes at a time: enough that handing it
// over costs nothing.
const blockBytes = 1 << 16

// MapLines applies change to every object of the JSON Lines file in and writes the
// results to out, in the same order, whole or not at all. Blank lines are left out.
// change runs on as many lines at a time as there are workers. The error is that of
// the first faulty line, and names it.
func MapLines(ctx context.Context, in, out string, workers int, change func(Extra) error) error {
	w, err := Create(out)
	if err != nil {
		return err
	}
	defer w.Discard()
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	// Every block goes both ways: to whoever is free, and to us, who wait for it.
	work, ordered := make(chan *block), make(chan *block, 2*workers)
	go func() { // not waited for: it may hang in a pipe that nobody writes to
		defer close(work)
		defer close(ordered)
		for b := range blocks(in) {
			for _, to := range []chan<- *block{ordered, work} {
				select {
				case to <- b:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	for range workers {
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case b, more := <-work:
					if !more {
						return
					}
					b.convert(change)
				}
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b, more := <-ordered:
			if ctx.Err() != nil { // which ends the blocks, too
				return ctx.Err()
			}
			if !more {
				return w.Commit()
			}
			if err := b.copyTo(ctx, w); err != nil {
				return err
			}
		}
	}
}

// block is some lines of a file on their way. done is closed when out and err, the
// error of reading or of a line, are there.
type block struct {
	lines []line
	out   bytes.Buffer
	err   error
	done  chan struct{}
}

// copyTo waits for the block and writes it.
func (b *block) copyTo(ctx context.Context, w *File) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.done:
	}
	if b.err != nil {
		return b.err
	}
	_, err := w.Write(b.out.Bytes())
	return err
}

// blocks cuts the lines of a file into blocks.
func blocks(path string) func(yield func(*block) bool) {
	return func(yield func(*block) bool) {
		b, size := &block{done: make(chan struct{})}, 0
		for l, err := range readLines(path) {
			if err != nil {
				b.err = err
				break
			}
			b.lines = append(b.lines, l)
			if size += len(l.text); size >= blockBytes {
				if !yield(b) {
					return
				}
				b, size = &block{done: make(chan struct{})}, 0
			}
		}
		yield(b)
	}
}

func (b *block) convert(change func(Extra) error) {
	defer close(b.done)
	encoder := json.NewEncoder(&b.out)
	encoder.SetEscapeHTML(false)
	for _, l := range b.lines {
		if l.blank() {
			continue
		}
		var object Extra
		err := json.Unmarshal(l.text, &object)
		if err != nil {
			b.err = l.errorf("want a JSON object: %w", PlainJSONError(err))
			return
		}
		if object == nil {
			b.err = l.errorf("want a JSON object: got null")
			return
		}
		if err = change(object); err == nil {
			err = encoder.Encode(object)
		}
		if err != nil {
			b.err = l.errorf("%w", err)
			return
		}
	}
}
