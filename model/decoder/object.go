package decoder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"caper/model/safetensors"
)

// Object is a JSON object with its values still encoded: config.json as it was read,
// so that keys nobody here knows survive a load and a save.
type Object map[string]json.RawMessage

// ReadObject reads a JSON object from a file.
func ReadObject(path string) (Object, error) {
	text, err := safetensors.ReadText(path)
	if err != nil {
		return nil, err
	}
	var o Object
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("%s: not a JSON object: %w; get the file again", path, err)
	}
	if o == nil {
		return nil, fmt.Errorf("%s: not a JSON object; get the file again", path)
	}
	return o, nil
}

// Clone returns a copy that can be changed.
func (o Object) Clone() Object { return maps.Clone(o) }

// Has reports whether key is there with a value other than null.
func (o Object) Has(key string) bool {
	value, ok := o[key]
	return ok && string(value) != "null"
}

// Decode stores the value of key in dst and leaves dst alone when there is none.
func (o Object) Decode(key string, dst any) error {
	if !o.Has(key) {
		return nil
	}
	if err := json.Unmarshal(o[key], dst); err != nil {
		return fmt.Errorf("%s: %s is not what belongs there", key, o[key])
	}
	return nil
}

// DecodeAll stores the values of the keys named by the json tags of the struct dst.
func (o Object) DecodeAll(dst any) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	err = json.Unmarshal(text, dst)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: %s is not what belongs there", wrong.Field, wrong.Value)
	}
	return err
}

// Require refuses a value of key other than the allowed ones, which are all that is
// implemented. A missing key or null means the default, which is allowed.
func (o Object) Require(key string, allowed ...any) error {
	if !o.Has(key) {
		return nil
	}
	var value any
	if err := json.Unmarshal(o[key], &value); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	same := func(a any) bool { return reflect.DeepEqual(a, value) }
	if slices.ContainsFunc(allowed, same) {
		return nil
	}
	if len(allowed) == 0 {
		return fmt.Errorf("%s: %s: not supported", key, o.short(key))
	}
	var names []string
	for _, a := range allowed {
		text, _ := json.Marshal(a)
		names = append(names, string(text))
	}
	return fmt.Errorf("%s: %s: not supported, only %s", key, o.short(key), strings.Join(names, ", "))
}

// short is the value of key on one line.
func (o Object) short(key string) string {
	var line bytes.Buffer
	if json.Compact(&line, o[key]) != nil {
		return string(o[key])
	}
	return line.String()
}

// Set stores value under key.
func (o Object) Set(key string, value any) error {
	text, err := encode(value, "")
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	o[key] = bytes.TrimSpace(text) // an encoder ends with a newline
	return nil
}

// SetAll stores the fields of the struct src under the keys that its json tags name.
func (o Object) SetAll(src any) error {
	text, err := encode(src, "")
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &o)
}

// Text returns the object as a file's content.
func (o Object) Text() ([]byte, error) { return encode(o, "  ") }

// encode is json.Marshal that leaves "<" in token names readable.
func encode(value any, indent string) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(value)
	return text.Bytes(), err
}
