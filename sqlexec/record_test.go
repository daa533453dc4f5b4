package sqlexec

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
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

// Where rows of two results surely differ, SQLite's DISTINCT of them, with any collation
// and type of column, gives results that differ by the strict rule.
func TestSurelyOthers(t *testing.T) {
	d := openShop(t)
	cell := rapid.SampledFrom([]string{"NULL", "1", "2", "1.0", "0.3", "0.1 + 0.2", "'a'", "'A'", "'a '", "'b'", "'1'", "x'61'"})
	surely := 0
	rapid.Check(t, func(t *rapid.T) {
		collation := rapid.SampledFrom([]string{"BINARY", "NOCASE", "RTRIM"}).Draw(t, "collation")
		var all, distinct [2]Record
		for i := range 2 {
			cells := rapid.SliceOfN(cell, 1, 3).Draw(t, "cells")
			values := "(VALUES (" + strings.Join(cells, "), (") + "))"
			for into, query := range map[*Record]string{
				&all[i]:      "SELECT column1 COLLATE " + collation + " FROM " + values,
				&distinct[i]: "SELECT DISTINCT column1 COLLATE " + collation + " FROM " + values,
			} {
				var err error
				if *into, err = d.record(context.Background(), query); err != nil {
					t.Fatal(err)
				}
			}
		}
		if SurelyOthers(all[0], all[1]) {
			surely++
			if Strict.SameRecords(distinct[0], distinct[1], "SELECT 1") {
				t.Fatalf("%v and %v", all[0].Result().Rows, all[1].Result().Rows)
			}
		}
	})
	if surely == 0 {
		t.Error("no case was sure")
	}
}
