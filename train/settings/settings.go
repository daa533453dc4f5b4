// Package settings reads the configuration of a training: a struct of sections, each a
// struct of plain fields with toml tags. A file gives some values, section.key=value words
// give others, a key that does not exist is an error, and every mistake is reported with
// the place where the value was written.
package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Error is a mistake in a configuration, which whoever wrote that must correct.
// The text names the key and where its value was written.
type Error struct{ err error }

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// Origin knows where the values of a configuration were written.
type Origin struct {
	file  string            // that it was read from, "" for none
	given map[string]string // by key: FILE:LINE or an override
}

// Load is Read for the text of a file; path may be empty.
func Load(c any, path string, overrides []string) (Origin, error) {
	if path == "" {
		return Read(c, nil, "", overrides)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Origin{}, fmt.Errorf("configuration: %w", err)
	}
	return Read(c, text, path, overrides)
}

// Read decodes text over *c, which holds the defaults, and applies the overrides, words
// of the form section.key=value. name stands for the file in errors. A mistake in them is
// an *Error.
func Read(c any, text []byte, name string, overrides []string) (Origin, error) {
	o := Origin{name, map[string]string{}}
	if err := o.read(c, text, func(line int) string { return fmt.Sprintf("%s:%d", name, line) }); err != nil {
		return o, err
	}
	types := fields(c)
	for _, word := range overrides {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return o, &Error{fmt.Errorf("override %q: want section.key=value", word)}
		}
		where := "override " + strconv.Quote(word)
		if err := o.read(c, []byte(key+" = "+tomlValue(types[key], value)), func(int) string { return where }); err != nil {
			return o, err
		}
	}
	return o, nil
}

// read decodes text over *c and notes where each key stands.
func (o Origin) read(c any, text []byte, place func(line int) string) error {
	if err := decode(c, text, place); err != nil {
		return &Error{err}
	}
	for key, line := range keyLines(c, text) {
		o.given[key] = place(line)
	}
	return nil
}

// Mistake says what is wrong with the value of a key of *c, as an *Error.
func (o Origin) Mistake(c any, key, format string, args ...any) error {
	value := Values(c)[key]
	shown := fmt.Sprint(value)
	if text, ok := value.(string); ok {
		shown = strconv.Quote(text)
	}
	where, ok := o.given[key]
	if !ok {
		where = cmp.Or(o.file, "configuration")
		shown += " (the default)"
	}
	return &Error{fmt.Errorf("%s: %s = %s: %w", where, key, shown, fmt.Errorf(format, args...))}
}

// Text writes *c as TOML, with a comment on every key that needs one.
func Text(c any) string { return marshal(c) }

// TextWithout writes *c as TOML without the values of some keys.
func TextWithout(c any, keys ...string) string {
	sections := tree(c)
	for _, key := range keys {
		section, name, _ := strings.Cut(key, ".")
		delete(sections[section], name)
	}
	return marshal(sections)
}

func marshal(v any) string {
	text, err := toml.Marshal(v)
	if err != nil {
		panic(err) // only plain fields: cannot fail
	}
	return string(text)
}

// Values returns every value of *c under its key, section.key.
func Values(c any) map[string]any {
	all := map[string]any{}
	for section, values := range tree(c) {
		for key, value := range values {
			all[section+"."+key] = value
		}
	}
	return all
}

func tree(c any) map[string]map[string]any {
	var sections map[string]map[string]any
	if err := toml.Unmarshal([]byte(marshal(c)), &sections); err != nil {
		panic(err) // marshal writes TOML
	}
	return sections
}

// Difference returns the first key, in order, of which *c has another value than a text
// that TextWithout wrote with the same exceptions, "" where there is none. A key that the
// text does not have counts at its value in *defaults, which is overwritten.
func Difference(c, defaults any, text string, except ...string) (string, error) {
	if err := decode(defaults, []byte(text), func(line int) string { return fmt.Sprintf("its line %d", line) }); err != nil {
		return "", err
	}
	a, b := Values(c), Values(defaults)
	for _, key := range except {
		delete(a, key)
		delete(b, key)
	}
	for _, key := range keys(c) {
		if !reflect.DeepEqual(a[key], b[key]) {
			return key, nil
		}
	}
	return "", nil
}

// decode reads text over *c. place names a line of the text in errors.
func decode(c any, text []byte, place func(line int) string) error {
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(c)
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) {
		e := strict.Errors[0]
		row, _ := e.Position()
		key := strings.Join(e.Key(), ".")
		return fmt.Errorf("%s: unknown key %q; the nearest is %q", place(row), key, nearest(key, keys(c)))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		row, _ := bad.Position()
		key := strings.Join(bad.Key(), ".")
		if want := wanted(fields(c)[key]); want != "" {
			return fmt.Errorf("%s: %s: want %s", place(row), key, want)
		}
		return fmt.Errorf("%s: %s", place(row), strings.TrimPrefix(bad.Error(), "toml: "))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", place(1), err)
	}
	return nil
}

// FindFiles checks that the files that a setting names are there, before anything is done,
// and makes their paths independent of the current folder: a run's configuration is read
// from others.
func FindFiles(paths []string) error {
	for i, path := range paths {
		absolute, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(absolute)
		}
		if err != nil {
			return err
		}
		paths[i] = absolute
	}
	return nil
}
