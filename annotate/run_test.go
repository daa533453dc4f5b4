package annotate

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/google/go-cmp/cmp"

	"caper/data"
)

// petRows is the database of the hand cases. Bob has no pet; Ann and Cid own
// pets; two owners live in Rome.
var petRows = []string{
	"CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT, city TEXT)",
	"CREATE TABLE pet (id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owner(id), name TEXT, weight REAL, born TEXT)",
	"INSERT INTO owner VALUES (1,'Ann','Rome'),(2,'Bob','Rome'),(3,'Cid','Oslo')",
	"INSERT INTO pet VALUES (1,1,'Rex',9.5,'2019-03-01'),(2,1,'Tom',4,'2020-05-05'),(3,3,'Ida',4,'2021-01-31'),(4,3,'Rex',2.5,'2021-02-01')",
}

// petBenchmark writes a benchmark in Spider's layout with the one database pets.
func petBenchmark(t testing.TB) *data.Benchmark {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "database", "pets")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", filepath.Join(folder, "pets.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range petRows {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	for name, text := range map[string]string{"tables.json": "[]", "dev.json": "[]"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := data.OpenBenchmark(dir, "spider")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// petRollouts pairs queries with their gold.
func petRollouts(pairs ...string) []data.Rollout {
	var list []data.Rollout
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, data.Rollout{
			Dataset: "hand", QuestionID: data.IndexID(i / 2), DBID: "pets", Question: "which?",
			Gold: pairs[i], SQL: pairs[i+1], Source: "hand",
		})
	}
	return list
}

// each makes a stream of rollouts that have been read without error.
func each(list []data.Rollout) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// annotated runs the annotator and returns its tuples and summary.
func annotated(t testing.TB, b *data.Benchmark, list []data.Rollout, o Options) ([]data.Tuple, Summary) {
	t.Helper()
	var tuples []data.Tuple
	summary, err := Run(context.Background(), b, each(list), o, func(t data.Tuple) error {
		tuples = append(tuples, t)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if summary.InvalidTuples > 0 {
		t.Errorf("%d tuples break the format", summary.InvalidTuples)
	}
	return tuples, summary
}

// TestCounterfactuals works through failing queries whose fault a reader can
// point at. Each want is operator, clause, index/count, prefix, chosen,
// rejected, and the text of v*.
func TestCounterfactuals(t *testing.T) {
	b := petBenchmark(t)
	o := DefaultOptions()
	for _, c := range []struct {
		name, gold, wrong string
		want              []data.Tuple
	}{
		{"one column is wrong", "SELECT name FROM owner WHERE city = 'Rome'", "select id from owner where city='Rome'",
			[]data.Tuple{{Operator: "single", Clause: "SELECT", ClauseCount: 3, Chosen: "select name ", Rejected: "select id ",
				SQLChosen: "select name from owner where city='Rome'", Root: data.Root{Start: 7, End: 9, Kind: "column"}, EditCost: 1, RootClause: true, Reward: -1, Margin: 1}}},
		{"aliases differ, the comparison is wrong", "SELECT T1.name FROM owner AS T1 WHERE T1.id > 2", "SELECT o.name FROM owner o WHERE o.id < 2;",
			[]data.Tuple{{Operator: "single", Clause: "WHERE", ClauseIndex: 2, ClauseCount: 3, Prefix: "SELECT o.name FROM owner o ",
				Chosen: "WHERE o.id > 2;", Rejected: "WHERE o.id < 2;", SQLChosen: "SELECT o.name FROM owner o WHERE o.id > 2;",
				Root: data.Root{Start: 33, End: 41, Kind: "compare"}, EditCost: 2, RootClause: true, Reward: -1, Margin: 1}}},
		{"WHERE is missing at the end", "SELECT name FROM owner WHERE city = 'Oslo'", "SELECT name\nFROM owner;",
			[]data.Tuple{{Operator: "single", Clause: "WHERE", ClauseIndex: 2, ClauseCount: 2, Prefix: "SELECT name\nFROM owner",
				Chosen: "\nWHERE city = 'Oslo';", Rejected: "", SQLChosen: "SELECT name\nFROM owner\nWHERE city = 'Oslo';",
				Root: data.Root{Start: 22, End: 22, Kind: "where"}, EditCost: 4, RootClause: true, Reward: -1, Margin: 1}}},
		{"WHERE is missing in the middle", "SELECT name FROM pet WHERE weight = 4 ORDER BY name", "SELECT name FROM pet ORDER BY name",
			[]data.Tuple{{Operator: "single", Clause: "WHERE", ClauseIndex: 2, ClauseCount: 3, Prefix: "SELECT name FROM pet ",
				Chosen: "WHERE weight = 4 ", Rejected: "ORDER BY name", SQLChosen: "SELECT name FROM pet WHERE weight = 4 ORDER BY name",
				Root: data.Root{Start: 21, End: 21, Kind: "where"}, EditCost: 4, RootClause: true, Reward: -1, Margin: 1}}},
		{"a clause too many at the end", "SELECT name FROM pet", "SELECT name FROM pet LIMIT 1",
			[]data.Tuple{{Operator: "single", Clause: "LIMIT", ClauseIndex: 2, ClauseCount: 3, Prefix: "SELECT name FROM pet ",
				Chosen: "", Rejected: "LIMIT 1", SQLChosen: "SELECT name FROM pet ",
				Root: data.Root{Start: 21, End: 28, Kind: "limit"}, EditCost: 2, RootClause: true, Reward: -1, Margin: 1}}},
		{"two faults: the first counts", "SELECT name FROM owner WHERE city = 'Oslo'", "SELECT id FROM owner WHERE city = 'Rome'",
			[]data.Tuple{{Operator: "first", Clause: "SELECT", ClauseCount: 3, Chosen: "SELECT name ", Rejected: "SELECT id ",
				SQLChosen: "SELECT name FROM owner WHERE city = 'Oslo'", Root: data.Root{Start: 7, End: 9, Kind: "column"}, EditCost: 1, RootClause: true, Reward: -1, Margin: 1}}},
		{"a literal in a sub-query: the outer clause gets a decayed margin",
			"SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet WHERE weight > 5)",
			"SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet WHERE weight > 2)",
			[]data.Tuple{
				{Operator: "single", Clause: "WHERE", ClauseIndex: 2, ClauseCount: 3, Prefix: "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet ",
					Chosen: "WHERE weight > 5", Rejected: "WHERE weight > 2", SQLChosen: "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet WHERE weight > 5)",
					Root: data.Root{Start: 76, End: 77, Kind: "number"}, EditCost: 1, RootClause: true, Reward: -1, Margin: 1},
				// 2, compare 1, where 2, block 3, in 4: exp(-16/8).
				{Operator: "single", Clause: "WHERE", ClauseIndex: 2, ClauseCount: 3, Prefix: "SELECT name FROM owner ",
					Chosen: "WHERE id IN (SELECT owner_id FROM pet WHERE weight > 5)", Rejected: "WHERE id IN (SELECT owner_id FROM pet WHERE weight > 2)",
					SQLChosen: "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet WHERE weight > 5)",
					Root:      data.Root{Start: 76, End: 77, Kind: "number"}, EditCost: 1, Reward: -math.Exp(-2), Margin: math.Exp(-2)},
			}},
		{"a set operation is missing", "SELECT city FROM owner EXCEPT SELECT name FROM owner WHERE id = 1", "SELECT city FROM owner WHERE id = 9",
			[]data.Tuple{{Operator: "first", Clause: "WHERE", ClauseIndex: 2, ClauseCount: 3, Prefix: "SELECT city FROM owner ",
				Chosen: "EXCEPT SELECT name FROM owner WHERE id = 1", Rejected: "WHERE id = 9",
				SQLChosen: "SELECT city FROM owner EXCEPT SELECT name FROM owner WHERE id = 1",
				Root:      data.Root{Start: 23, End: 35, Kind: "where"}, EditCost: 4, RootClause: true, Reward: -1, Margin: 1}}},
		{"text runs on after the statement", "SELECT name FROM owner", "SELECT id FROM owner; SELECT 1",
			[]data.Tuple{{Operator: "single", Clause: "SELECT", ClauseCount: 2, Chosen: "SELECT name ", Rejected: "SELECT id ",
				SQLChosen: "SELECT name FROM owner;", SQLRejected: "SELECT id FROM owner;", Cut: true,
				Root: data.Root{Start: 7, End: 9, Kind: "column"}, EditCost: 1, RootClause: true, Reward: -1, Margin: 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := annotated(t, b, petRollouts(c.gold, c.wrong), o)
			for i := range got {
				got[i].ID, got[i].Prompt = "", ""
			}
			for i := range c.want {
				w := &c.want[i]
				w.Dataset, w.QuestionID, w.DBID, w.Question, w.Split = "hand", data.IndexID(0), "pets", "which?", "train"
				w.Source = "counterfactual"
				if w.SQLRejected == "" {
					w.SQLRejected = c.wrong
				}
				if w.Prefix+w.Rejected == w.Prefix && w.Prefix != "" {
					w.SQLRejected = w.Prefix
				}
			}
			sameID := cmp.Comparer(func(a, b data.QuestionID) bool { return a == b })
			if diff := cmp.Diff(c.want, got, sameID); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReasons gives each way in which a rollout yields nothing.
func TestReasons(t *testing.T) {
	b := petBenchmark(t)
	gold := "SELECT name FROM owner"
	list := petRollouts(
		gold, "SELECT id FROM owner",
		gold, "  ",
		gold, "SELECT FROM WHERE",
		gold, "SELECT \xff FROM owner",
		"SELECT nothing FROM owner", "SELECT id FROM owner",
		gold, "SELECT name FROM owner; SELECT 1",
		"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT max(x) FROM n", "SELECT 2",
	)
	list = append(list, list[0])
	b.Limits.Timeout = 50e6
	_, summary := annotated(t, b, list, DefaultOptions())
	want := map[Reason]int{NoQuery: 1, NoParse: 2, GoldError: 1, RunOn: 1, GoldTimeout: 1, Duplicate: 1}
	if diff := cmp.Diff(want, summary.Reasons); diff != "" {
		t.Error(diff)
	}
	if summary.Rollouts != len(list) || summary.Repaired != 1 || summary.Failing != 3 {
		t.Errorf("summary %+v", summary)
	}
}

// mixture is a run with both sources of tuples and some hostile queries.
func mixture() []data.Rollout {
	nested := "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet WHERE weight > 3 AND born > '2020-01-01') ORDER BY name LIMIT 1"
	joined := "SELECT T1.name, count(*) FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id GROUP BY T1.id HAVING count(*) > 1"
	return petRollouts(
		nested, nested,
		joined, joined,
		joined, "SELECT name, count(*) FROM owner GROUP BY id",
		nested, "SELECT name FROM owner WHERE id IN (SELECT owner_id FROM pet)",
		nested, "ATTACH 'x' AS y",
		nested, "SELECT zeroblob(400000000)",
		nested, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT max(x) FROM n",
		joined, "SELECT name FROM owner; DROP TABLE owner",
		"SELECT max(weight) FROM pet", "SELECT max(weight) FROM pet",
	)
}

// TestWorkersChangeNothing: the same bytes for one worker and for four, in the
// order of the rollouts; the same mutants in whatever order the rollouts come.
func TestWorkersChangeNothing(t *testing.T) {
	b := petBenchmark(t)
	b.Limits.Timeout = 200e6
	o := DefaultOptions()
	lines := func(workers int, list []data.Rollout) []string {
		o.Workers = workers
		tuples, _ := annotated(t, b, list, o)
		var out []string
		for _, tuple := range tuples {
			line, err := json.Marshal(tuple)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(line))
		}
		return out
	}
	list := mixture()
	one := lines(1, list)
	if len(one) < 10 {
		t.Fatalf("only %d tuples", len(one))
	}
	if diff := cmp.Diff(one, lines(4, list)); diff != "" {
		t.Errorf("four workers: %s", diff)
	}
	slices.Reverse(list)
	reversed := lines(3, list)
	slices.Sort(one)
	slices.Sort(reversed)
	if diff := cmp.Diff(one, reversed); diff != "" {
		t.Errorf("reversed input: %s", diff)
	}
}

// TestHugeQueries: long lists, chains and nests are annotated or set aside, and
// do not hold up the run.
func TestHugeQueries(t *testing.T) {
	b := petBenchmark(t)
	gold := "SELECT name FROM pet WHERE id IN (1, 2)"
	list := petRollouts(
		gold, "SELECT name FROM pet WHERE id IN (1, 2"+strings.Repeat(", 77", 20000)+")",
		gold, "SELECT name FROM pet WHERE id IN (1"+strings.Repeat(", 77", 20000)+")",
		gold, "SELECT name FROM pet WHERE id IN (1, 2)"+strings.Repeat(" AND id < 9", 900),
		gold, "SELECT name FROM pet WHERE id = 1"+strings.Repeat(" OR id = 9", 900),
		gold, "SELECT name FROM pet WHERE id IN "+strings.Repeat("(", 100000)+"1"+strings.Repeat(")", 100000),
		gold, "SELECT "+strings.Repeat("name, ", 1500)+"name FROM pet",
	)
	_, summary := annotated(t, b, list, DefaultOptions())
	if summary.Correct != 2 || summary.Failing != 4 || summary.Repaired != 3 {
		t.Errorf("summary %+v", summary)
	}
}

// TestRunStops: the end of the context, an error of emit and an error of the
// rollouts end the run and come back.
func TestRunStops(t *testing.T) {
	b := petBenchmark(t)
	stop := errors.New("stop")
	list := mixture()
	endless := func(yield func(data.Rollout, error) bool) {
		for i := 0; ; i++ {
			r := list[i%2]
			r.QuestionID = data.IndexID(i)
			if !yield(r, nil) {
				return
			}
		}
	}
	keep := func(data.Tuple) error { return nil }

	ctx, cancel := context.WithCancel(context.Background())
	_, err := Run(ctx, b, endless, DefaultOptions(), func(data.Tuple) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	_, err = Run(context.Background(), b, endless, DefaultOptions(), func(data.Tuple) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("emit: %v", err)
	}
	broken := func(yield func(data.Rollout, error) bool) {
		if yield(list[0], nil) {
			yield(data.Rollout{}, stop)
		}
	}
	if _, err = Run(context.Background(), b, broken, DefaultOptions(), keep); !errors.Is(err, stop) {
		t.Errorf("rollouts: %v", err)
	}
	o := DefaultOptions()
	o.Sigma = 0
	if _, err = Run(context.Background(), b, endless, o, keep); err == nil {
		t.Error("sigma 0 is accepted")
	}
}

// TestGranularities: top and no propagation give the root clause alone, with the
// whole margin.
func TestGranularities(t *testing.T) {
	b := petBenchmark(t)
	list := mixture()[:2]
	o := DefaultOptions()
	o.Inject, o.PerClause = 12, 12
	nested, _ := annotated(t, b, list, o)
	if !slices.ContainsFunc(nested, func(t data.Tuple) bool { return !t.RootClause && t.Margin < 1 }) {
		t.Error("nested: no tuple has a decayed margin")
	}
	o.Propagation = false
	flat, _ := annotated(t, b, list, o)
	o.Granularity, o.Propagation = Top, true
	top, summary := annotated(t, b, list, o)
	for _, tuple := range append(flat, top...) {
		if !tuple.RootClause || tuple.Margin != 1 || tuple.Reward != -1 {
			t.Errorf("%s: margin %v, root clause %v", tuple.Operator, tuple.Margin, tuple.RootClause)
		}
	}
	if len(flat) >= len(nested) || summary.EnclosingTuples != 0 || len(summary.Margins) != 1 {
		t.Errorf("%d tuples without propagation, %d with; at top %+v", len(flat), len(nested), summary)
	}
}
