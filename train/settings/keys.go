package settings

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// keyLines finds the line of every key: a strict decoder that has c's sections but a
// place for none of their keys lists them all.
func keyLines(c any, text []byte) map[string]int {
	var sections []reflect.StructField
	for _, f := range exported(reflect.TypeOf(c).Elem()) {
		f.Type = reflect.TypeFor[struct{}]()
		sections = append(sections, f)
	}
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	lines := map[string]int{}
	var missing *toml.StrictMissingError
	if errors.As(d.Decode(reflect.New(reflect.StructOf(sections)).Interface()), &missing) {
		for _, e := range missing.Errors {
			row, _ := e.Position()
			lines[strings.Join(e.Key(), ".")] = row
		}
	}
	return lines
}

// exported lists the fields of a struct that have a key, those of embedded structs with
// them.
func exported(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return f.Anonymous || !f.IsExported()
	})
}

// fields returns the type of every value of *c by its key.
func fields(c any) map[string]reflect.Type {
	t := reflect.TypeOf(c)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	all := map[string]reflect.Type{}
	for _, section := range exported(t) {
		for _, f := range exported(section.Type) {
			all[section.Tag.Get("toml")+"."+f.Tag.Get("toml")] = f.Type
		}
	}
	return all
}

// keys lists every key of *c, sorted.
func keys(c any) []string { return slices.Sorted(maps.Keys(fields(c))) }

// tomlValue writes a command-line word as TOML, in the form that its key takes: text
// in quotes, a list of texts from words between commas or a TOML list, anything
// else as it is.
func tomlValue(field reflect.Type, word string) string {
	switch {
	case field == nil:
	case field.Kind() == reflect.String:
		return strconv.Quote(word)
	case field.Kind() == reflect.Slice && !strings.HasPrefix(word, "["):
		words := strings.Split(word, ",")
		for i := range words {
			words[i] = strconv.Quote(words[i])
		}
		return "[" + strings.Join(words, ",") + "]"
	}
	if toml.Unmarshal([]byte("V = "+word), new(struct{ V any })) != nil {
		return strconv.Quote(word) // refused where the key is decoded, with its name
	}
	return word
}

// wanted names the type of a key's value, "" where there is no such key.
func wanted(field reflect.Type) string {
	if field == nil {
		return ""
	}
	switch field.Kind() {
	case reflect.Uint64:
		return "a whole number, 0 or more"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text in quotes"
	}
	return "a list of texts in quotes"
}

// nearest returns the known key with the smallest Levenshtein distance.
func nearest(key string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return levenshtein(key, a) - levenshtein(key, b) })
}

func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
