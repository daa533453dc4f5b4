package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Extra holds the fields of a line that its format does not name, so that they
// survive reading and writing.
type Extra map[string]json.RawMessage

// with returns the fields and one more.
func (e Extra) with(name string, value json.RawMessage) Extra {
	all := maps.Clone(e)
	if all == nil {
		all = Extra{}
	}
	all[name] = value
	return all
}

// Marshal is JSON as files and people get it: without the escapes for HTML, which
// would make every comparison in SQL unreadable.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// marshalWithExtra writes the fields of v, a struct, then the extra ones by name.
func marshalWithExtra(v any, extra Extra) ([]byte, error) {
	line, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	known := fields(reflect.TypeOf(v))
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if _, ok := known[name]; ok {
			continue
		}
		key, err := Marshal(name)
		if err != nil {
			return nil, err
		}
		line = append(line[:len(line)-1], ',')
		line = append(append(line, key...), ':')
		line = append(append(line, extra[name]...), '}')
	}
	return line, nil
}

// unmarshalWithExtra reads a JSON object into the struct that v points to and
// returns the fields that v has no place for. Unlike encoding/json it tells "sql"
// from "SQL", which benchmarks use for different things. An error names the field.
func unmarshalWithExtra(object []byte, v any) (Extra, error) {
	var all Extra
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, PlainJSONError(err)
	}
	target := reflect.ValueOf(v).Elem()
	for name, index := range fields(target.Type()) {
		raw, ok := all[name]
		if !ok {
			continue
		}
		delete(all, name)
		if err := json.Unmarshal(raw, target.Field(index).Addr().Interface()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, PlainJSONError(err))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// fields maps the JSON names of a struct's fields to their indexes.
func fields(t reflect.Type) map[string]int {
	if known, ok := fieldsOfTypes.Load(t); ok {
		return known.(map[string]int)
	}
	names := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names[name] = i
		}
	}
	fieldsOfTypes.Store(t, names)
	return names
}

var fieldsOfTypes sync.Map // reflect.Type to what fields returns

// isNull reports that a value is null, which encoding/json would read as an empty one.
func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// readString reads a JSON string that may be empty but not null.
func readString(raw json.RawMessage) (text string, err error) {
	if isNull(raw) {
		return "", errors.New("want string, have null")
	}
	err = json.Unmarshal(raw, &text)
	return text, PlainJSONError(err)
}

// PlainJSONError says what is wrong with a text without naming Go's types; nil stays nil.
func PlainJSONError(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		want := kind.Type.Kind().String()
		switch kind.Type.Kind() {
		case reflect.Struct, reflect.Map:
			want = "object"
		case reflect.Slice:
			want = "list"
		case reflect.Float64:
			want = "number"
		}
		if kind.Field != "" {
			return fmt.Errorf("%s: want %s, have %s", kind.Field, want, kind.Value)
		}
		return fmt.Errorf("want %s, have %s", want, kind.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %v (byte %d)", syntax, syntax.Offset)
	case err == io.EOF:
		return errors.New("nothing is in it: want JSON")
	case err == io.ErrUnexpectedEOF:
		return errors.New("not JSON: it ends too early")
	}
	return err
}
