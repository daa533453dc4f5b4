package data

import (
	"encoding/json"
	"errors"
	"iter"
)

// ReadObjects streams a JSON Lines file of objects of any kind as what read makes of
// each. It stops after the first error, which names the line.
func ReadObjects[T any](path string, read func(Extra) (T, error)) iter.Seq2[T, error] {
	return readJSONLines(path, func(text []byte, v *T) (err error) {
		var object Extra
		if err := json.Unmarshal(text, &object); err != nil {
			return PlainJSONError(err)
		}
		if object == nil {
			return errors.New("want a JSON object, not null")
		}
		*v, err = read(object)
		return err
	})
}
