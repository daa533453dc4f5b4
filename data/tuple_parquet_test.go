package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"
)

// anyTuple draws a valid tuple with texts and ids of every kind.
func anyTuple(t *rapid.T) Tuple {
	text := rapid.String()
	tuple := goodTuple()
	tuple.Extra = nil
	tuple.Question, tuple.Evidence, tuple.Prompt = text.Draw(t, "question"), text.Draw(t, "evidence"), text.Draw(t, "prompt")
	tuple.QuestionID = rapid.OneOf(
		rapid.Map(rapid.IntRange(-5, 1e9), IndexID),
		rapid.Map(text, NameID),
		rapid.Map(rapid.StringMatching(`-?[0-9]{1,3}|"a"|""`), NameID),
		rapid.Just(QuestionID{}),
	).Draw(t, "id")
	tail := text.Draw(t, "tail")
	tuple.SQLChosen, tuple.SQLRejected = tuple.Prefix+tuple.Chosen+tail, tuple.Prefix+tuple.Rejected+tail
	tuple.Margin = rapid.Float64Range(1e-9, 1).Draw(t, "margin")
	tuple.Reward, tuple.RootClause = -tuple.Margin, rapid.Bool().Draw(t, "root clause")
	tuple.ID = tuple.ContentID()
	return tuple
}

// A file says the same in both formats, and comes back as it was through either.
func TestParquetHoldsWhatJSONLinesHold(t *testing.T) {
	dir := t.TempDir()
	lines, columns, back := filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "t.parquet"), filepath.Join(dir, "back.jsonl")
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(anyTuple), 0, 5).Draw(t, "tuples")
		for _, step := range []error{WriteTuples(lines, slices.Values(want)), ConvertTuples(lines, columns), ConvertTuples(columns, back)} {
			if step != nil {
				t.Fatal(step)
			}
		}
		have, err := collect(ReadTuples(columns))
		if err != nil || len(have) != len(want) || len(want) > 0 && !reflect.DeepEqual(have, want) {
			t.Fatalf("%v\nhave %+v\nwant %+v", err, have, want)
		}
		first, _ := os.ReadFile(lines)
		second, _ := os.ReadFile(back)
		if string(first) != string(second) {
			t.Fatalf("other bytes after a detour over Parquet:\n%s\n%s", first, second)
		}
	})
}

// The columns are the fields of the JSON line, in their order.
func TestParquetColumnsAreTheFields(t *testing.T) {
	names := func(t reflect.Type, tag string) (all []string) {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get(tag), ",")
			if name != "-" {
				all = append(all, name)
			}
		}
		return all
	}
	for _, pair := range [][2]any{{Tuple{}, tupleRow{}}, {Root{}, rootRow{}}} {
		fields, columns := names(reflect.TypeOf(pair[0]), "json"), names(reflect.TypeOf(pair[1]), "parquet")
		if !slices.Equal(fields, columns) {
			t.Errorf("fields %q, columns %q", fields, columns)
		}
	}
	if err := WriteTuples(filepath.Join(t.TempDir(), "t.parquet"), slices.Values([]Tuple{goodTuple()})); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("an unknown field without a column: %v", err)
	}
}

// What other programs leave out or change is named; what they add, or write as
// nullable, is passed over.
func TestParquetOfOthers(t *testing.T) {
	good := goodTuple()
	good.Extra = nil
	row := map[string]any{}
	if text, err := Marshal(good); err != nil || json.Unmarshal(text, &row) != nil {
		t.Fatal(err)
	}
	row["question_id"], row["note"] = "3", "mine"
	for _, c := range []struct {
		name, want string
		change     func(columns parquet.Group)
	}{
		{"more", "", func(columns parquet.Group) {
			for name, column := range columns {
				columns[name] = parquet.Optional(column)
			}
			columns["note"] = parquet.Optional(parquet.String())
		}},
		{"less", "column root.kind is missing", func(columns parquet.Group) {
			columns["root"] = parquet.Group{"start": parquet.Int(64), "end": parquet.Int(64)}
		}},
		{"other", "column margin: want DOUBLE, have", func(columns parquet.Group) { columns["margin"] = parquet.String() }},
		{"list", "column clause: want", func(columns parquet.Group) { columns["clause"] = parquet.Repeated(parquet.String()) }},
	} {
		columns := parquet.Group{}
		for _, f := range parquet.SchemaOf(tupleRow{}).Fields() {
			columns[f.Name()] = f
		}
		c.change(columns)
		path := filepath.Join(t.TempDir(), c.name+".parquet")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.NewGenericWriter[any](f, parquet.NewSchema("others", columns))
		if c.want == "" { // the others are refused for their columns alone
			if _, err := w.Write([]any{row}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		have, err := collect(ReadTuples(path))
		if c.want == "" {
			if err != nil || !reflect.DeepEqual(have, []Tuple{good}) {
				t.Errorf("%s: %v %+v", c.name, err, have)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// An error in a row names it.
func TestBrokenParquetRow(t *testing.T) {
	good := goodTuple()
	good.Extra = nil
	row, err := rowOf(good)
	if err != nil {
		t.Fatal(err)
	}
	broken := row
	broken.Margin = -1
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := parquet.WriteFile(path, []tupleRow{row, broken}); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(ReadTuples(path)); err == nil || !strings.HasPrefix(err.Error(), path+": row 2: margin: ") {
		t.Error(err)
	}
}

// A damaged file is an error or reads as before, and never ends the program.
func TestDamagedParquet(t *testing.T) {
	var tuples []Tuple
	for i := range 20 {
		tuple := goodTuple()
		tuple.Extra, tuple.Question = nil, fmt.Sprint("Which of ", i)
		tuple.ID = tuple.ContentID()
		tuples = append(tuples, tuple)
	}
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := WriteTuples(path, slices.Values(tuples)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		damaged := slices.Clone(whole)
		for range 1 + random.IntN(3) {
			damaged[4+random.IntN(len(damaged)-4)] ^= byte(1 + random.IntN(255))
		}
		if random.IntN(4) == 0 {
			damaged = damaged[:4+random.IntN(len(damaged)-4)]
		}
		if err := os.WriteFile(path, damaged, 0o666); err != nil {
			t.Fatal(err)
		}
		for range ReadTuples(path) {
		}
	}
}
