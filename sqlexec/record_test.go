package sqlexec

import (
	"encoding/binary"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// record packs a result as a worker does.
func record(r *Result) Record {
	b := make(Record, recordHeader)
	b[0] = 'r'
	if r.Truncated {
		b[1] = 1
	}
	binary.LittleEndian.PutUint32(b[2:], uint32(len(r.Columns)))
	binary.LittleEndian.PutUint64(b[6:], uint64(len(r.Rows)))
	binary.LittleEndian.PutUint64(b[14:], uint64(r.Elapsed))
	for _, name := range r.Columns {
		b = appendCell(b, name)
	}
	for _, row := range r.Rows {
		for _, v := range row {
			b = appendCell(b, v)
		}
	}
	return b
}

func appendCell(b []byte, v Value) []byte {
	const integer, float, text, blob, null = 1, 2, 3, 4, 5 // SQLite's numbers
	switch v := v.(type) {
	case int64:
		return binary.LittleEndian.AppendUint64(append(b, integer), uint64(v))
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, float), math.Float64bits(v))
	case string:
		return append(binary.LittleEndian.AppendUint32(append(b, text), uint32(len(v))), v...)
	case []byte:
		return append(binary.LittleEndian.AppendUint32(append(b, blob), uint32(len(v))), v...)
	}
	return append(b, null)
}

// Records compare as the results in them, by every rule.
func TestSameRecords(t *testing.T) {
	value := rapid.SampledFrom([]Value{nil, int64(1), 1.0, 1.5, "1", "a", "\xff", []byte("a"), int64(2)})
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *Result {
			width := rapid.IntRange(1, 2).Draw(t, "width")
			r := &Result{Columns: []string{name, "x"}[:width], Truncated: rapid.Bool().Draw(t, "truncated")}
			r.Rows = rapid.SliceOfN(rapid.SliceOfN(value, width, width), 0, 3).Draw(t, name)
			return r
		}
		gold, pred := draw("gold"), draw("pred")
		if rapid.Bool().Draw(t, "the same rows") {
			pred = &Result{Columns: make([]string, len(gold.Columns)), Rows: gold.Rows, Truncated: gold.Truncated}
		}
		for _, rule := range []Rule{Bird, TestSuite, Strict} {
			for _, query := range []string{"SELECT a FROM t", "SELECT a FROM t ORDER BY a"} {
				if have, want := rule.SameRecords(record(gold), record(pred), query), rule.Same(gold, pred, query); have != want {
					t.Fatalf("%s, %s: %v for %v and %v", rule, query, have, gold, pred)
				}
			}
		}
	})
}
