package data

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
)

// line is one line of a text file, without its line end.
type line struct {
	path   string
	number int // from 1
	text   []byte
}

// errorf names the line's place.
func (l line) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", l.path, l.number, fmt.Errorf(format, args...))
}

func (l line) blank() bool { return len(bytes.TrimSpace(l.text)) == 0 }

// readLines streams the lines of a file, however long they are.
func readLines(path string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(line{}, err)
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 1<<16)
		for number := 1; ; number++ {
			text, err := r.ReadBytes('\n')
			if err != nil && err != io.EOF {
				yield(line{}, err) // which names the file
				return
			}
			if len(text) == 0 {
				return
			}
			text = bytes.TrimRight(text, "\r\n")
			if number == 1 {
				text = bytes.TrimPrefix(text, []byte("\ufeff"))
			}
			if !yield(line{path, number, text}, nil) {
				return
			}
		}
	}
}

// readJSONLines streams a JSON Lines file as values of type T, which decode fills
// from an object. Blank lines are skipped. It stops after the first error, which
// names the line and the field.
func readJSONLines[T any](path string, decode func(object []byte, v *T) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for l, err := range readLines(path) {
			if err != nil {
				yield(none, err)
				return
			}
			if l.blank() {
				continue
			}
			var v T
			if err := decode(l.text, &v); err != nil {
				yield(none, l.errorf("%w", err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// writeJSONLines writes a file whole or not at all.
func writeJSONLines[T any](path string, values iter.Seq[T]) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	for v := range values {
		if err := f.WriteLine(v); err != nil {
			return err
		}
	}
	return f.Commit()
}
