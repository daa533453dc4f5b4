package solve

import (
	"context"
	"os"
	"strings"
	"testing"

	"caper/data"
	"caper/sqlexec"
)

// Whatever a candidate says, the run goes on, and an honest one is taken.
func TestHostileCandidates(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	honest := "SELECT name FROM maker"
	var all []Candidate
	for i, text := range []string{
		"DROP TABLE maker", "ATTACH 'x' AS y; SELECT 1", "SELECT load_extension('x')", "PRAGMA writable_schema=1", "SELECT 1\x00",
		strings.Repeat("(", 5000) + "SELECT 1" + strings.Repeat(")", 5000), "SELECT " + strings.Repeat("1+", 20000) + "1", "SELECT '" + strings.Repeat("x", 3<<20) + "'",
		"SELECT \xff\xfe FROM maker", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n WHERE i < 0 LIMIT 1",
		"SELECT * FROM " + strings.Repeat("maker, ", 62) + "maker", "SELECT ?1 FROM maker", "SELECT name FROM maker WHERE name IN (" + strings.Repeat("'a',", 5000) + "'b')",
		"SELECT " + strings.Repeat("(SELECT ", 60) + "nme" + strings.Repeat(")", 60), "VALUES (1),(2)", ";;;", "```", honest, honest + ";",
	} {
		c := rollout(string(rune('a'+i)), text)
		all = append(all, c)
	}
	limits := sqlexec.DefaultLimits()
	limits.Timeout /= 20
	bounded, err := d.db.Within(limits)
	if err != nil {
		t.Fatal(err)
	}
	r, err := repairer(oneDatabase{bounded, d.schema}).Repair(context.Background(), pool(all...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Select(context.Background(), r.Question, r.Candidates, DefaultOptions())
	if err != nil || !strings.HasPrefix(got.Candidates[got.Chosen].SQL, honest) {
		t.Errorf("taken: %s, %v", got.chosenAs(), err)
	}
	if _, err := r.Lines(); err != nil {
		t.Error(err)
	}
}

// A database that is not there, or damaged, leaves what texts tell: the structure that
// most wrote.
func TestWithoutDatabase(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"dev.json":    `[{"db_id":"gone","question":"which?"},{"db_id":"noise","question":"which?"}]`,
		"tables.json": `[{"db_id":"gone","table_names_original":["maker"],"column_names_original":[[-1,"*"],[0,"name"],[0,"id"]],"column_types":["text","text","number"],"primary_keys":[],"foreign_keys":[]}]`,
	} {
		if err := os.WriteFile(dir+"/"+path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir+"/database/noise", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/database/noise/noise.sqlite", []byte(strings.Repeat("no database", 99)), 0o644); err != nil {
		t.Fatal(err)
	}
	bench, err := data.OpenBenchmark(dir, "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	for _, id := range []string{"gone", "noise"} {
		var all []Candidate
		for i, text := range []string{"SELECT name FROM maker", "SELECT id FROM maker", "SELECT T1.name FROM maker AS T1 WHERE id > 0"} {
			c := rollout(string(rune('a'+i)), text)
			c.DBID = id
			all = append(all, c)
		}
		p := pool(all...)
		p.Question.DBID = id
		r, err := repairer(bench).Repair(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Select(context.Background(), p.Question, r.Candidates, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		x := got.Candidates[got.Chosen]
		if x.State != NotRun || x.Message == "" || got.Stage != NoConsensus || id == "gone" && x.SQL != "SELECT name FROM maker" {
			t.Errorf("%s: %s, %s %s", id, got.chosenAs(), x.State, x.Message)
		}
	}
}
