package solve

import (
	"context"
	"errors"
	"testing"

	"caper/data"
	"caper/sql"
	"caper/sqlexec"
)

func TestScreen(t *testing.T) {
	d := makeDatabase(t, 0, shop...)
	for _, c := range []struct {
		query string
		want  []Code
	}{
		{"", []Code{NoSQL}},
		{" ;", []Code{NotOneSelect}},
		{"SELECT name FROM maker WHERE", []Code{NoParse}},
		{"I do not know.", []Code{NoParse}},
		{"DROP TABLE maker", []Code{NotOneSelect}},
		{"SELECT 1; SELECT 2", []Code{NotOneSelect}},
		{"SELECT name FROM makers", []Code{UnknownTable}},
		{"SELECT nome FROM maker", []Code{UnknownColumn}},
		{"SELECT T9.name FROM maker", []Code{UnknownColumn}},
		{"SELECT (SELECT nome FROM car) FROM maker", []Code{UnknownColumn}},
		{"SELECT id FROM maker JOIN car ON maker.id = maker_id", []Code{AmbiguousColumn}},
		{"SELECT name FROM maker WHERE count(*) > 1", []Code{MisusedGroup}},
		{"SELECT name FROM maker HAVING name > 'a'", []Code{MisusedGroup}},
		{"SELECT name FROM maker, car", []Code{NoJoinCondition}},
		// All of these are fine.
		{"SELECT name FROM maker", nil},
		{"SELECT NAME FROM MAKER m WHERE m.Id = 1;", nil},
		{"SELECT rowid, name FROM maker", nil},
		{`SELECT "nome" FROM maker`, nil},
		{"SELECT name AS n FROM maker WHERE n = 'Volvo' ORDER BY n", nil},
		{"SELECT name FROM maker, car WHERE maker.id = maker_id", nil},
		{"SELECT name FROM maker, (SELECT max(price) AS p FROM car)", nil},
		{"WITH c AS (SELECT maker_id FROM car) SELECT name FROM maker JOIN c ON c.maker_id = maker.id", nil},
		{"SELECT count(*) FROM sqlite_master", nil},
		{"SELECT name FROM maker WHERE EXISTS (SELECT 1 FROM car WHERE maker_id = maker.id)", nil},
		{"SELECT name FROM maker GROUP BY country HAVING count(*) > 1", nil},
		{"SELECT max(id) FROM maker HAVING max(id) > 1", nil},
	} {
		x := examined(t, d, pool(rollout("a", c.query)))[0]
		var got []Code
		for _, f := range x.Screen(d.schema) {
			got = append(got, f.Code)
		}
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%q: %v, want %v", c.query, got, c.want)
		}
	}
}

// The filters that reject never reject what runs: gold of every split, and candidates of
// published systems. What they do not reject may fail for other reasons.
func TestRejectedQueriesDoNotRun(t *testing.T) {
	for _, c := range []struct{ bench, split, candidates string }{
		{"../../shared/data/spider", "dev", "../../shared/data/predictions/spider_dev.jsonl"},
		{"../../shared/data/spider", "train", ""},
		{"../../shared/data/bird", "dev", "../../shared/data/predictions/bird_dev.jsonl"},
	} {
		bench := sharedBenchmark(t, c.bench)
		questions, err := bench.Questions(c.split)
		if err != nil {
			t.Fatal(err)
		}
		queries, rejected := map[[2]string]bool{}, 0
		for _, q := range questions {
			queries[[2]string{q.DBID, q.Gold}] = true
		}
		if c.candidates != "" {
			for r, err := range data.ReadRollouts(c.candidates, bench, c.split) {
				if err != nil {
					t.Fatal(err)
				}
				queries[[2]string{r.DBID, r.SQL}] = true
			}
		}
		for q := range queries {
			schema, db := emptyDatabase(t, bench, q[0])
			w := workbench{schema: schema}
			x := w.read(Candidate{Rollout: data.Rollout{SQL: q[1]}})
			findings := x.Screen(schema)
			if len(findings) == 0 || !findings[0].Code.rejects() {
				continue
			}
			rejected++
			_, err := db.Query(context.Background(), q[1])
			if !errors.As(err, new(*sqlexec.Error)) {
				t.Errorf("%s: %v, but it runs: %s", q[0], findings[0], q[1])
			}
		}
		t.Logf("%s %s: %d queries, %d rejected", c.bench, c.split, len(queries), rejected)
	}
}

// emptyDatabase opens a database, or the one that has its tables without rows.
func emptyDatabase(t *testing.T, bench *data.Benchmark, dbID string) (*sql.Schema, *sqlexec.Database) {
	t.Helper()
	if db, err := bench.Database(dbID); err == nil {
		schema, err := bench.Schema(dbID)
		if err != nil {
			t.Fatal(err)
		}
		return schema, db
	}
	if known, ok := emptyDatabases[dbID]; ok {
		return known.schema, known.db
	}
	db, err := sqlexec.Open(bench.Dir+"/database_schema_only/"+dbID+"/"+dbID+".sqlite", sqlexec.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	schema, err := db.Schema()
	if err != nil {
		t.Fatal(err)
	}
	emptyDatabases[dbID] = oneDatabase{db, schema}
	return schema, db
}

var emptyDatabases = map[string]oneDatabase{}
