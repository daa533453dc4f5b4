package data

import (
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// collect drains an iterator up to its first error.
func collect[T any](values iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range values {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

func drawRollout(t *rapid.T) Rollout {
	text := rapid.StringMatching(`[ -~"\\öß<>&\n\t]{0,30}`)
	r := Rollout{
		Dataset: text.Draw(t, "dataset"), DBID: "db" + text.Draw(t, "db"), Question: text.Draw(t, "question"),
		Evidence: text.Draw(t, "evidence"), Gold: text.Draw(t, "gold"), SQL: text.Draw(t, "sql"),
		Source: text.Draw(t, "source"), Sample: rapid.IntRange(0, 99).Draw(t, "sample"),
		QuestionID: rapid.OneOf(rapid.Map(rapid.IntRange(0, 1<<30), IndexID), rapid.Map(text, NameID)).Draw(t, "id"),
	}
	if rapid.Bool().Draw(t, "extra") {
		r.Extra = Extra{"SQL": json.RawMessage(`"not sql"`), "verdict": json.RawMessage(`{"b":1.50,"a":[2]}`)}
	}
	return r
}

func TestRolloutsSurviveTheirFile(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawRollout), 0, 5).Draw(t, "rollouts")
		path := filepath.Join(dir, "rollouts.jsonl")
		if err := WriteRollouts(path, slices.Values(want)); err != nil {
			t.Fatal(err)
		}
		have, err := collect(ReadRollouts(path, nil, ""))
		if err != nil || len(have) != len(want) {
			t.Fatalf("%d of %d: %v", len(have), len(want), err)
		}
		for i := range want {
			if !reflect.DeepEqual(have[i], want[i]) {
				t.Fatalf("have %+v\nwant %+v", have[i], want[i])
			}
		}
	})
}

func TestLinesAreStable(t *testing.T) {
	const line = `{"dataset":"d","question_id":"x","db_id":"zoo","question":"a < b & c","evidence":"","gold":"","sql":"SELECT 1","source":"","sample":0,"a":[1, 2],"z":null}`
	var r Rollout
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatal(err)
	}
	if text, err := Marshal(r); err != nil || string(text) != strings.Replace(line, "[1, 2]", "[1,2]", 1) {
		t.Errorf("%s\n%s %v", line, text, err)
	}
}

func TestPredictionFiles(t *testing.T) {
	dir := spiderFolder(t)
	b := open(t, dir)
	for name, c := range map[string]struct {
		content string
		want    []string // source, id, sql of each
	}{
		"own.jsonl": {`{"question_id": "k-7", "sql": "SELECT 2", "source": "m"}` + "\n\n" + `{"question_id": 0, "sql": "", "source": "m"}` + "\n",
			[]string{"m k-7 SELECT 2", "m 0 "}},
		"plain.txt":    {"SELECT 1\nSELECT\t2\n", []string{"plain 0 SELECT 1", "plain 1 SELECT\t2"}},
		"withdb.txt":   {"SELECT 1\tzoo\r\n SELECT\t2 \tzoo", []string{"withdb 0 SELECT 1", "withdb 1 SELECT\t2"}},
		"spaced.txt":   {"SELECT 1\n\nSELECT 2\n\n", []string{"spaced 0 SELECT 1", "spaced 1 SELECT 2"}},
		"empty.txt":    {"SELECT 1\n\n", []string{"empty 0 SELECT 1", "empty 1 "}},
		"badbytes.txt": {"SELECT '\xff'\nSELECT 2\n", []string{"badbytes 0 SELECT '\ufffd'", "badbytes 1 SELECT 2"}},
		"bird.json": {"{\"1\": \"SELECT 2\\t----- bird -----\\tzoo\",\n \"0\": \"SELECT 1\"}",
			[]string{"bird 0 SELECT 1", "bird 1 SELECT 2"}},
		"maps.jsonl": {`{"idx": 1, "db_id": "zoo", "preds": {"b": {"sql": "SELECT 2", "ts": 1}, "a_raw": {"sql": " id FROM keeper"}, "c_raw": {"sql": "with x AS (SELECT 1) SELECT 1"}}}`,
			[]string{"a_raw 1 SELECT id FROM keeper", "b 1 SELECT 2", "c_raw 1 with x AS (SELECT 1) SELECT 1"}},
		"none.jsonl": {"", nil},
	} {
		rollouts, err := collect(ReadRollouts(write(t, t.TempDir(), name, c.content), b, "dev"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ids := map[string]string{"0": "0", "k-7": "1"}
		var have []string
		for _, r := range rollouts {
			id := r.QuestionID.String()
			if name != "own.jsonl" {
				id = ids[id]
			}
			have = append(have, r.Source+" "+id+" "+r.SQL)
			if r.DBID != "zoo" || r.Gold == "" || r.Question == "" || r.Dataset != b.Name {
				t.Errorf("%s: not filled in: %+v", name, r)
			}
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: have %q\nwant %q", name, have, c.want)
		}
	}
}

func TestBrokenPredictionFiles(t *testing.T) {
	b := open(t, spiderFolder(t))
	for name, c := range map[string]struct{ content, want string }{
		"syntax.jsonl":   {"{\"question_id\": 0, \"sql\": \"SELECT 1\"}\n{\"question_id\": 0, \"sql\": \"SEL\n", "syntax.jsonl:2: not JSON"},
		"type.jsonl":     {"{\"question_id\": 0, \"sql\": 5}\n", "type.jsonl:1: sql: want string, have number"},
		"sample.jsonl":   {"{\"question_id\": 0, \"sql\": \"\", \"sample\": \"x\"}\n", "sample.jsonl:1: sample: want int, have string"},
		"nosql.jsonl":    {"{\"question_id\": 0, \"SQL\": \"SELECT 1\"}\n", "nosql.jsonl:1: sql: missing"},
		"nullsql.jsonl":  {"{\"question_id\": 0, \"sql\": \"\"}\n{\"question_id\": 0, \"sql\": null}\n", "nullsql.jsonl:2: sql: missing or null; write \"sql\": \"\""},
		"noid.jsonl":     {"{\"sql\": \"SELECT 1\"}\n", "noid.jsonl:1: question_id: missing"},
		"badid.jsonl":    {"{\"question_id\": [1], \"sql\": \"SELECT 1\"}\n", "badid.jsonl:1: question_id: want a number or a string"},
		"otherid.jsonl":  {"{\"question_id\": 99, \"sql\": \"SELECT 1\"}\n", "otherid.jsonl:1: question_id: 99 is not in split dev"},
		"otherdb.jsonl":  {"{\"question_id\": 0, \"db_id\": \"park\", \"sql\": \"SELECT 1\"}\n", "otherdb.jsonl:1: db_id: \"park\", but question 0"},
		"short.txt":      {"SELECT 1\n", "1 queries for the 2 questions"},
		"list.json":      {"[\"SELECT 1\"]", "a JSON list"},
		"key.json":       {"{\"0\": \"SELECT 1\", \"x\": \"SELECT 2\"}", "key \"x\""},
		"range.json":     {"{\"7\": \"SELECT 1\"}", "key 7: question 7: split dev has 2 questions"},
		"database.json":  {"{\"0\": \"SELECT 1\\t----- bird -----\\tpark\"}", "key 0: db_id: \"park\""},
		"nopred.jsonl":   {"{\"idx\": 0, \"preds\": {\"a\": {}}}\n", "nopred.jsonl:1: preds: a: sql: missing"},
		"nullpred.jsonl": {"{\"idx\": 0, \"preds\": {\"a\": {\"sql\": null}}}\n", "nullpred.jsonl:1: preds: a: sql: missing or not a string"},
		"twice.json":     {"{\"0\": \"SELECT 1\",\n \"1\": \"SELECT 1\",\n \"0\": \"SELECT 2\"}", "twice.json:3: key 0: it stands in line 1 already"},
		"padded.json":    {"{\"0\": \"SELECT 1\",\n \"00\": \"SELECT 2\"}", "padded.json:2: key 00: it stands in line 1"},
		"cut.json":       {"{\"0\": \"SELECT 1\"", "cut.json:1: not JSON"},
		"more.json":      {"{\"0\": \"SELECT 1\"}\n{}", "more.json:2: text behind the JSON object"},
		"noindex.jsonl":  {"{\"preds\": {}}\n", "noindex.jsonl:1: idx: missing"},
		"overflow.jsonl": {"{\"idx\": 8, \"preds\": {}}\n", "overflow.jsonl:1: question 8"},
	} {
		_, err := collect(ReadRollouts(write(t, t.TempDir(), name, c.content), b, "dev"))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: have %v, want %q", name, err, c.want)
		}
	}
	_, err := collect(ReadRollouts("/nowhere/rollouts.jsonl", nil, ""))
	if err == nil || !strings.Contains(err.Error(), "/nowhere/rollouts.jsonl") {
		t.Error(err)
	}
	_, err = collect(ReadRollouts(write(t, t.TempDir(), "plain.txt", "SELECT 1\n"), nil, ""))
	if err == nil || !strings.Contains(err.Error(), "name the benchmark") {
		t.Error(err)
	}
}

func TestRealPredictionFiles(t *testing.T) {
	for _, c := range []struct {
		bench string
		file  []string
		count int
	}{
		{"spider", []string{"predictions", "spider_dev.jsonl"}, 8272},
		{"spider", []string{"spider", "pred_example.txt"}, 1034},
		{"bird", []string{"predictions", "bird_dev.jsonl"}, 17974},
	} {
		b := open(t, sharedData(t, c.bench))
		rollouts, err := collect(ReadRollouts(sharedData(t, c.file...), b, "dev"))
		if err != nil || len(rollouts) != c.count {
			t.Errorf("%v: %d rollouts, %v", c.file, len(rollouts), err)
		}
	}
}

// FuzzReadRollouts: no file makes the reader panic, and an error is one line.
func FuzzReadRollouts(f *testing.F) {
	for _, seed := range []string{"SELECT 1\n\nSELECT 2\tzoo", `{"0": "SELECT 1"}`, `{"question_id":0,"sql":"x"}`, `{"idx":0,"preds":{"a":{"sql":"x"}}}`, "[", "{", "\ufeff{}"} {
		f.Add([]byte(seed))
	}
	b := open(f, spiderFolder(f))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := collect(ReadRollouts(path, b, "dev"))
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	})
}
