package data

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"caper/sql"
)

// MarshalJSON writes the fields in their order, then Extra by name.
func (t Tuple) MarshalJSON() ([]byte, error) {
	type plain Tuple
	return marshalWithExtra(plain(t), t.Extra)
}

// UnmarshalJSON reads a line; an error names the field.
func (t *Tuple) UnmarshalJSON(object []byte) error {
	type plain Tuple
	extra, err := unmarshalWithExtra(object, (*plain)(t))
	t.Extra = extra
	return err
}

// ReadTuples streams a file of valid tuples: JSON Lines, or Parquet, which its
// first bytes tell. It stops after the first error, which names the line or row
// and the field.
func ReadTuples(path string) iter.Seq2[Tuple, error] {
	if isParquet(path) {
		return readParquetTuples(path)
	}
	return readJSONLines(path, func(object []byte, t *Tuple) error {
		if err := t.UnmarshalJSON(object); err != nil {
			return err
		}
		return t.Validate()
	})
}

// IsParquet reports that a file of this name is written as Parquet.
func IsParquet(path string) bool { return strings.EqualFold(filepath.Ext(path), ".parquet") }

// WriteTuples writes a file whole or not at all, and no tuple that ReadTuples would
// refuse: Parquet where the name ends in .parquet, else JSON Lines.
func WriteTuples(path string, tuples iter.Seq[Tuple]) error {
	return writeTuples(path, func(yield func(Tuple, error) bool) {
		for t := range tuples {
			if err := t.Validate(); err != nil {
				yield(t, fmt.Errorf("tuple %s: %w", t.ID, err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	})
}

// ConvertTuples writes the tuples of one file to another, whose name tells its
// format.
func ConvertTuples(from, to string) error { return writeTuples(to, ReadTuples(from)) }

func writeTuples(path string, tuples iter.Seq2[Tuple, error]) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	write := writeJSONTuples
	if IsParquet(path) {
		write = writeParquetTuples
	}
	if err := write(f, tuples); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Commit()
}

func writeJSONTuples(f *File, tuples iter.Seq2[Tuple, error]) error {
	for t, err := range tuples {
		if err != nil {
			return err
		}
		if err := f.WriteLine(t); err != nil {
			return err
		}
	}
	return nil
}

// ContentID is the hash of question, prefix, chosen and rejected that names a
// tuple: 32 hexadecimal digits.
func (t *Tuple) ContentID() string {
	h := sha256.New()
	for _, part := range []string{t.Question, t.Prefix, t.Chosen, t.Rejected} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Validate checks the invariants of the format: what bytes are prefixes of what,
// where v* lies, and the ranges of the numbers. The error names the field.
func (t *Tuple) Validate() error {
	for _, check := range []func() error{t.checkTexts, t.checkUnits, t.checkLabels, t.checkNumbers} {
		if err := check(); err != nil {
			return err
		}
	}
	if id := t.ContentID(); t.ID != id {
		return fmt.Errorf("id: %q, but the hash of question, prefix, chosen and rejected is %q", t.ID, id)
	}
	return nil
}

func (t *Tuple) checkTexts() error {
	// JSON replaces other bytes, which would move every offset behind them.
	for _, f := range []struct{ name, text string }{
		{"question", t.Question}, {"evidence", t.Evidence}, {"prompt", t.Prompt},
		{"sql_chosen", t.SQLChosen}, {"sql_rejected", t.SQLRejected},
	} {
		if !utf8.ValidString(f.text) {
			return fmt.Errorf("%s: not UTF-8", f.name)
		}
	}
	switch {
	case t.DBID == "":
		return errors.New("db_id: missing")
	case !strings.HasPrefix(t.SQLChosen, t.Prefix+t.Chosen):
		return errors.New("sql_chosen: does not start with prefix and chosen")
	case !strings.HasPrefix(t.SQLRejected, t.Prefix+t.Rejected):
		return errors.New("sql_rejected: does not start with prefix and rejected")
	case t.Chosen == t.Rejected:
		return errors.New("chosen: equal to rejected")
	case t.Chosen == "" && !endsAt(t.SQLChosen, len(t.Prefix)):
		return errors.New("chosen: empty, but sql_chosen goes on after prefix")
	case t.Rejected == "" && !endsAt(t.SQLRejected, len(t.Prefix)):
		return errors.New("rejected: empty, but sql_rejected goes on after prefix")
	}
	return nil
}

// endsAt reports that the statement is over at offset n of its text.
func endsAt(query string, n int) bool { return strings.Trim(query[n:], "; \t\r\n") == "" }

func (t *Tuple) checkUnits() error {
	start, end := len(t.Prefix), len(t.Prefix)+len(t.Rejected)
	switch {
	case t.Root.Start > t.Root.End:
		return fmt.Errorf("root: start %d is after end %d", t.Root.Start, t.Root.End)
	case t.Root.Start < start || t.Root.End > end:
		return fmt.Errorf("root: bytes %d to %d are not inside rejected, bytes %d to %d of sql_rejected", t.Root.Start, t.Root.End, start, end)
	case t.Root.Kind == "":
		return errors.New("root: kind is missing")
	case t.ClauseIndex < 0 || t.ClauseIndex > t.ClauseCount:
		return fmt.Errorf("clause_index: %d of %d clauses", t.ClauseIndex, t.ClauseCount)
	case (t.ClauseIndex == t.ClauseCount) != (t.Rejected == ""):
		return fmt.Errorf("clause_index: %d of %d, but only an empty rejected stands at the end", t.ClauseIndex, t.ClauseCount)
	}
	return nil
}

func (t *Tuple) checkLabels() error {
	switch sql.ClauseKind(t.Clause) {
	case sql.ClauseWith, sql.ClauseSelect, sql.ClauseFrom, sql.ClauseWhere, sql.ClauseGroupBy, sql.ClauseHaving,
		sql.ClauseWindow, sql.ClauseSetOp, sql.ClauseOrderBy, sql.ClauseLimit, sql.ClauseEnd:
	default:
		return fmt.Errorf("clause: unknown kind %q", t.Clause)
	}
	switch t.Source {
	case "injection":
		if t.Operator == "" {
			return errors.New("operator: missing")
		}
	case "counterfactual":
		if t.Operator != "single" && t.Operator != "first" && t.Operator != "cascade" {
			return fmt.Errorf("operator: %q; a counterfactual has single, first or cascade", t.Operator)
		}
	default:
		return fmt.Errorf("source: %q; want injection or counterfactual", t.Source)
	}
	return nil
}

func (t *Tuple) checkNumbers() error {
	switch {
	case !(t.Reward <= 0) || math.IsInf(t.Reward, 0):
		return fmt.Errorf("reward: %v; want a finite number that is not positive", t.Reward)
	case !(t.Margin > 0) || math.IsInf(t.Margin, 0):
		return fmt.Errorf("margin: %v; want a finite number above 0", t.Margin)
	case !(t.EditCost >= 0) || math.IsInf(t.EditCost, 0):
		return fmt.Errorf("edit_cost: %v; want a finite number that is not negative", t.EditCost)
	}
	return nil
}
