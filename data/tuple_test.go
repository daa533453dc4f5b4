package data

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func goodTuple() Tuple {
	t := Tuple{
		Dataset: "zoo", QuestionID: IndexID(3), DBID: "zoo", Question: "Which?", Split: "dev", Prompt: "animal(id)\nquestion: Which?\n",
		Prefix: "SELECT id FROM animal ", Chosen: "WHERE ö < 2 ", Rejected: "WHERE ö > 2 ",
		SQLChosen: "SELECT id FROM animal WHERE ö < 2 LIMIT 1", SQLRejected: "SELECT id FROM animal WHERE ö > 2 LIMIT 1",
		Clause: "WHERE", ClauseIndex: 2, ClauseCount: 4, Source: "injection", Operator: "where.comparison",
		Root: Root{Start: 28, End: 34, Kind: "compare"}, Reward: -1, Margin: 1, EditCost: 1, RootClause: true,
		Extra: Extra{"mine": []byte(`{"a":"<b>"}`)},
	}
	t.ID = t.ContentID()
	return t
}

func TestTuplesSurviveTheirFile(t *testing.T) {
	missing := goodTuple() // a clause that the prediction lacks at its end
	missing.Prefix, missing.Rejected, missing.Chosen = "SELECT id FROM animal ", "", "WHERE ö < 2 "
	missing.SQLRejected, missing.ClauseIndex, missing.ClauseCount = "SELECT id FROM animal ;", 2, 2
	missing.Root = Root{Start: 22, End: 22, Kind: "where"}
	missing.Source, missing.Operator = "counterfactual", "single"
	missing.ID, missing.Extra = missing.ContentID(), nil
	want := []Tuple{goodTuple(), missing}
	path := filepath.Join(t.TempDir(), "tuples.jsonl")
	if err := WriteTuples(path, slices.Values(want)); err != nil {
		t.Fatal(err)
	}
	have, err := collect(ReadTuples(path))
	if err != nil || !reflect.DeepEqual(have, want) {
		t.Errorf("%v\nhave %+v\nwant %+v", err, have, want)
	}
	text, _ := os.ReadFile(path)
	if !strings.Contains(string(text), `"rejected":"WHERE ö > 2 "`) || !strings.Contains(string(text), `"mine":{"a":"<b>"}}`) {
		t.Errorf("text is escaped: %s", text)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for field, spoil := range map[string]func(*Tuple){
		"id":           func(t *Tuple) { t.ID = "x" },
		"db_id":        func(t *Tuple) { t.DBID = "" },
		"prompt":       func(t *Tuple) { t.Prompt = "\xff" },
		"sql_chosen":   func(t *Tuple) { t.Chosen = "WHERE ö = 2" },
		"sql_rejected": func(t *Tuple) { t.SQLRejected = "SELECT id FROM animal" },
		"chosen":       func(t *Tuple) { t.Chosen = "" },
		"rejected":     func(t *Tuple) { t.Rejected = "" },
		"root":         func(t *Tuple) { t.Root.Start = 21 },
		"clause_index": func(t *Tuple) { t.ClauseIndex = 4 },
		"clause":       func(t *Tuple) { t.Clause = "FROM-JOIN" },
		"source":       func(t *Tuple) { t.Source = "guess" },
		"operator":     func(t *Tuple) { t.Source = "counterfactual" },
		"reward":       func(t *Tuple) { t.Reward = 0.5 },
		"margin":       func(t *Tuple) { t.Margin = math.NaN() },
		"edit_cost":    func(t *Tuple) { t.EditCost = -1 },
	} {
		tuple := goodTuple()
		if err := tuple.Validate(); err != nil {
			t.Fatal(err)
		}
		spoil(&tuple)
		if field != "id" {
			tuple.ID = tuple.ContentID()
		}
		if err := tuple.Validate(); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: have %v", field, err)
		}
	}
}

func TestEveryRootOutsideItsClauseIsRefused(t *testing.T) {
	tuple := goodTuple()
	start, end := len(tuple.Prefix), len(tuple.Prefix)+len(tuple.Rejected)
	for from := -1; from <= end+2; from++ {
		for to := -1; to <= end+2; to++ {
			tuple.Root.Start, tuple.Root.End = from, to
			if ok := start <= from && from <= to && to <= end; ok != (tuple.Validate() == nil) {
				t.Errorf("root %d to %d", from, to)
			}
		}
	}
}

func TestContentIDSeparatesItsParts(t *testing.T) {
	seen := map[string]string{}
	for _, parts := range [][4]string{{"a", "b", "c", "d"}, {"ab", "", "c", "d"}, {"a", "bc", "", "d"}, {"a", "b", "", "cd"}, {"a", "b", "d", "c"}, {"1:a", "", "", ""}, {"1", ":a", "", ""}} {
		tuple := Tuple{Question: parts[0], Prefix: parts[1], Chosen: parts[2], Rejected: parts[3]}
		id := tuple.ContentID()
		if other, ok := seen[id]; ok || len(id) != 32 {
			t.Errorf("%q and %q: id %s", parts, other, id)
		}
		seen[id] = fmt.Sprint(parts)
	}
}

func TestABrokenTupleIsNeitherReadNorWritten(t *testing.T) {
	dir := t.TempDir()
	good, bad := goodTuple(), goodTuple()
	bad.Margin = 0
	path := filepath.Join(dir, "tuples.jsonl")
	if err := WriteTuples(path, slices.Values([]Tuple{good, bad})); err == nil || !strings.Contains(err.Error(), "margin") {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	line, _ := Marshal(good)
	write(t, dir, "tuples.jsonl", string(line)+"\n"+strings.Replace(string(line), `"margin":1`, `"margin":0`, 1)+"\n")
	tuples, err := collect(ReadTuples(path))
	if len(tuples) != 1 || err == nil || !strings.Contains(err.Error(), "tuples.jsonl:2: margin: 0") {
		t.Errorf("%d tuples, %v", len(tuples), err)
	}
}
