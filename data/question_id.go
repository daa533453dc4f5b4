package data

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// QuestionID identifies a question inside a split as the benchmark's file gave
// it: a JSON number or a JSON string, written back the same way. It is
// comparable; the zero value means that no id was given.
type QuestionID struct {
	text   string
	quoted bool
}

// IndexID is the id of a question whose file gives none: its index there.
func IndexID(index int) QuestionID { return QuestionID{text: strconv.Itoa(index)} }

// NameID is an id that the benchmark writes as a string.
func NameID(name string) QuestionID { return QuestionID{text: name, quoted: true} }

// IsZero reports that no id was given.
func (q QuestionID) IsZero() bool { return q == QuestionID{} }

// String returns the id without quotes.
func (q QuestionID) String() string { return q.text }

// MarshalJSON writes the id as it was read, null when there is none.
func (q QuestionID) MarshalJSON() ([]byte, error) {
	switch {
	case q.IsZero():
		return []byte("null"), nil
	case q.quoted:
		return Marshal(q.text)
	}
	return []byte(q.text), nil
}

// UnmarshalJSON reads a number, a string or null.
func (q *QuestionID) UnmarshalJSON(raw []byte) error {
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "null":
		*q = QuestionID{}
		return nil
	case text[0] == '"':
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return err
		}
		*q = NameID(name)
		return nil
	case text[0] == '-' || text[0] >= '0' && text[0] <= '9':
		*q = QuestionID{text: text}
		return nil
	}
	return fmt.Errorf("want a number or a string, have %s", text)
}
