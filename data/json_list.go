package data

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
)

// item is one element of a file that is a JSON list.
type item struct {
	path   string
	offset int64 // behind the element before it
	text   []byte
}

// errorf names the line where the item starts.
func (i item) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", i.path, lineAt(i.path, i.offset), fmt.Errorf(format, args...))
}

// readJSONList streams the elements of a JSON list. It stops after the first error.
func readJSONList(path string) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(item{}, err)
			return
		}
		defer f.Close()
		dec := json.NewDecoder(bufio.NewReaderSize(f, 1<<16))
		fail := func(err error) {
			if err == io.EOF {
				err = errors.New("the file ends before the list does")
			}
			yield(item{}, item{path: path, offset: dec.InputOffset()}.errorf("%w", PlainJSONError(err)))
		}
		open, err := dec.Token()
		if err == nil && open != json.Delim('[') {
			err = errors.New("want a JSON list")
		}
		if err != nil {
			fail(err)
			return
		}
		for dec.More() {
			i := item{path: path, offset: dec.InputOffset()}
			var text json.RawMessage
			if err := dec.Decode(&text); err != nil {
				fail(err)
				return
			}
			i.text = text
			if !yield(i, nil) {
				return
			}
		}
		if _, err := dec.Token(); err != nil {
			fail(err)
		}
	}
}

// lineAt returns the line, from 1, of the first byte from offset on that is
// neither space nor comma.
func lineAt(path string, offset int64) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	r := bufio.NewReader(f)
	number := 1
	for at := int64(0); ; at++ {
		c, err := r.ReadByte()
		if err != nil || at >= offset && !strings.ContainsRune(", \t\r\n", rune(c)) {
			return number
		}
		if c == '\n' {
			number++
		}
	}
}
