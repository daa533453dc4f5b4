package data

import (
	"bufio"
	"bytes"
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
			if err == io.EOF || err == io.ErrUnexpectedEOF {
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

// member is a name and its value in a file that is a JSON object.
type member struct {
	name  string
	value item
}

// readJSONObject streams the members of a JSON object, also those of one name. It stops
// after the first error.
func readJSONObject(path string) iter.Seq2[member, error] {
	return func(yield func(member, error) bool) {
		text, err := os.ReadFile(path)
		if err != nil {
			yield(member{}, err)
			return
		}
		body := bytes.TrimPrefix(text, []byte("\ufeff"))
		mark := int64(len(text) - len(body))
		dec := json.NewDecoder(bytes.NewReader(body))
		here := func() item { return item{path: path, offset: mark + dec.InputOffset()} }
		fail := func(err error) {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				err = errors.New("the file ends before the object does")
			}
			yield(member{}, here().errorf("%w", PlainJSONError(err)))
		}
		open, err := dec.Token()
		if err == nil && open != json.Delim('{') {
			err = errors.New("want a JSON object")
		}
		if err != nil {
			fail(err)
			return
		}
		for dec.More() {
			value := here()
			name, err := dec.Token()
			var raw json.RawMessage
			if err == nil {
				err = dec.Decode(&raw)
			}
			if err != nil {
				fail(err)
				return
			}
			value.text = raw
			if !yield(member{name.(string), value}, nil) {
				return
			}
		}
		if _, err := dec.Token(); err != nil {
			fail(err)
		} else if _, err := dec.Token(); err != io.EOF {
			yield(member{}, here().errorf("text behind the JSON object"))
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
