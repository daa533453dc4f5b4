// Package series reads the metrics.jsonl of a run, whatever was trained, as numbers and
// counts that have a name: what other programs are shown of a run.
package series

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"caper/data"
)

// FileName is the file in a run folder.
const FileName = "metrics.jsonl"

// Line is one line of the file, its fields in the order of their names.
type Line struct {
	Step   int
	Values []Value
	Counts []Counts
}

// Value is a number, or 1 or 0 for true and false. Name is the path to the field, the
// parts joined by "/": loss, reward_by_clause/WHERE.
type Value struct {
	Name   string
	Number float64
}

// Counts is a list of counts, place i of which counts how often i was seen, or an object
// whose names are such places: {"0": 3, "8": 1}.
type Counts struct {
	Name   string
	Counts []float64
}

// Parse reads a line: a JSON object with a whole number "step". Fields that hold no
// numbers are left out.
func Parse(text []byte) (Line, error) {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return Line{}, data.PlainJSONError(err)
	}
	step, ok := fields["step"].(float64)
	if !ok || step != float64(int(step)) {
		return Line{}, errors.New(`field "step": want a whole number`)
	}
	delete(fields, "step")
	line := Line{Step: int(step)}
	line.add("", fields)
	slices.SortFunc(line.Values, func(a, b Value) int { return cmp.Compare(a.Name, b.Name) }) // "/" may sort otherwise within names
	return line, nil
}

func (l *Line) add(prefix string, fields map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name := prefix + key
		switch v := fields[key].(type) {
		case float64:
			l.Values = append(l.Values, Value{name, v})
		case bool:
			n := 0.0
			if v {
				n = 1
			}
			l.Values = append(l.Values, Value{name, n})
		case map[string]any:
			if counts, ok := places(v); ok {
				l.Counts = append(l.Counts, Counts{name, counts})
			} else {
				l.add(name+"/", v)
			}
		case []any:
			if counts, ok := numbers(v); ok {
				l.Counts = append(l.Counts, Counts{name, counts})
			}
		}
	}
}

func numbers(list []any) ([]float64, bool) {
	var all []float64
	for _, v := range list {
		n, ok := v.(float64)
		if !ok {
			return nil, false
		}
		all = append(all, n)
	}
	return all, len(all) > 0
}

// Value returns the number of that name.
func (l Line) Value(name string) (float64, bool) {
	i, ok := slices.BinarySearchFunc(l.Values, name, func(v Value, name string) int { return cmp.Compare(v.Name, name) })
	if !ok {
		return 0, false
	}
	return l.Values[i].Number, true
}

// Parts returns the numbers of the field of that name, an object, by the rest of their
// names.
func (l Line) Parts(of string) map[string]float64 {
	all := map[string]float64{}
	for _, v := range l.Values {
		if part, ok := strings.CutPrefix(v.Name, of+"/"); ok {
			all[part] = v.Number
		}
	}
	return all
}

// maxPlaces bounds the length of counts that are written as an object.
const maxPlaces = 1 << 12

func places(object map[string]any) ([]float64, bool) {
	var all []float64
	for key, v := range object {
		i, err := strconv.Atoi(key)
		n, ok := v.(float64)
		if err != nil || !ok || i < 0 || i >= maxPlaces {
			return nil, false
		}
		all = append(all, make([]float64, max(0, i+1-len(all)))...)
		all[i] = n
	}
	return all, len(all) > 0
}

// Reader reads the file of a run folder that may still be written to.
type Reader struct {
	path   string
	file   os.FileInfo // of the last reading
	offset int64
	line   int
}

// NewReader returns a reader at the start of the file of a run folder. The file need not
// be there yet.
func NewReader(dir string) *Reader { return &Reader{path: filepath.Join(dir, FileName)} }

// Next returns the lines that came since the last call. A line without its end is left
// until that is there. anew says that the file was replaced, as a resumed run does to
// drop what came after its checkpoint: the lines are all from the start of the new one.
// Where there is no file, the error is os.ErrNotExist.
func (r *Reader) Next() (lines []Line, anew bool, err error) {
	f, err := os.Open(r.path)
	if err != nil {
		return nil, false, fmt.Errorf("metrics of a run: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if r.file != nil && (!os.SameFile(r.file, info) || info.Size() < r.offset) {
		anew, r.offset, r.line = true, 0, 0
	}
	r.file = info
	text, err := io.ReadAll(io.NewSectionReader(f, r.offset, info.Size()-r.offset))
	if err != nil {
		return nil, anew, err
	}
	for text := range bytes.Lines(text) {
		if !bytes.HasSuffix(text, []byte("\n")) {
			break
		}
		line, err := Parse(text)
		if err != nil {
			return lines, anew, fmt.Errorf("%s:%d: %w", r.path, r.line+1, err)
		}
		r.offset += int64(len(text))
		r.line++
		lines = append(lines, line)
	}
	return lines, anew, nil
}
