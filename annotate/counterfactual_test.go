package annotate

import (
	"strings"
	"testing"

	"caper/data"
)

// TestSingleClauseRepairs gives failing queries in which one clause is wrong
// although gold, clause for clause, differs in more. Each wants the clause and the
// whole repaired query.
func TestSingleClauseRepairs(t *testing.T) {
	b := petBenchmark(t)
	for _, c := range []struct{ name, gold, wrong, clause, want string }{
		{"ORDER BY uses an alias that the repair takes away",
			"SELECT name FROM pet GROUP BY name ORDER BY count(*) DESC LIMIT 1",
			"SELECT name, count(*) AS n FROM pet GROUP BY name ORDER BY n DESC LIMIT 1;", "SELECT",
			"SELECT name FROM pet GROUP BY name ORDER BY count(*) DESC LIMIT 1;"},
		{"ORDER BY uses a position that the repair moves",
			"SELECT name FROM pet GROUP BY name ORDER BY count(*) DESC LIMIT 1",
			"select name, count(*) from pet group by 1 order by 2 desc limit 1", "SELECT",
			"select name from pet group by 1 order by count(*) desc limit 1"},
		{"WHERE names a column that the repaired FROM makes ambiguous",
			"SELECT T1.city FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id WHERE T1.name = 'Ann'",
			"SELECT city FROM owner WHERE name = 'Ann'", "FROM",
			"SELECT city FROM owner JOIN pet ON owner.id = owner_id WHERE owner.name = 'Ann'"},
		{"SELECT names a column that only USING keeps unambiguous",
			"SELECT T1.id FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.id",
			"SELECT id FROM pet", "FROM",
			"SELECT id FROM owner JOIN pet USING (id)"},
		{"the wrong table stands under an alias",
			"SELECT T2.name FROM pet AS T1 JOIN owner AS T2 ON T1.owner_id = T2.id WHERE T1.weight > 9",
			"SELECT b.name FROM pet a JOIN pet b ON a.owner_id = b.id WHERE a.weight > 9", "FROM",
			"SELECT b.name FROM pet a JOIN owner b ON a.owner_id = b.id WHERE a.weight > 9"},
		{"gold joins where the query has a sub-query",
			"SELECT T1.name FROM pet AS T1 JOIN owner AS T2 ON T1.owner_id = T2.id WHERE T2.city = 'Oslo' AND T1.weight > 3",
			"SELECT name FROM pet WHERE owner_id = (SELECT id FROM owner WHERE city = 'oslo') AND weight > 3", "WHERE",
			"SELECT name FROM pet WHERE owner_id IN (SELECT id FROM owner WHERE city = 'Oslo') AND weight > 3"},
		{"gold joins where the query lacks the condition",
			"SELECT T1.name FROM pet AS T1 JOIN owner AS T2 ON T1.owner_id = T2.id WHERE T2.city = 'Oslo'",
			"SELECT name FROM pet;", "WHERE",
			"SELECT name FROM pet WHERE owner_id IN (SELECT id FROM owner WHERE city = 'Oslo');"},
		{"gold reads a key from a table that the query does not need",
			"SELECT T1.id, count(*) FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id GROUP BY T1.id",
			"SELECT weight, count(*) FROM pet GROUP BY owner_id", "SELECT",
			"SELECT owner_id, count(*) FROM pet GROUP BY owner_id"},
		{"gold subtracts where the query excludes",
			"SELECT name FROM owner EXCEPT SELECT name FROM owner WHERE city = 'Rome'",
			"SELECT name FROM owner WHERE city NOT IN ('Oslo')", "WHERE",
			"SELECT name FROM owner WHERE name NOT IN (SELECT name FROM owner WHERE city = 'Rome')"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tuples, summary := annotated(t, b, petRollouts(c.gold, c.wrong), DefaultOptions())
			if len(tuples) == 0 || summary.Repairs[operatorSingle] != 1 {
				t.Fatalf("no single-clause repair: %d tuples, %+v", len(tuples), summary)
			}
			root := tuples[len(tuples)-1]
			if root.Clause != c.clause || root.SQLChosen != c.want {
				t.Errorf("clause %s, %s\nwant %s, %s", root.Clause, root.SQLChosen, c.clause, c.want)
			}
		})
	}
}

// TestSeveralSingleRepairs: where more than one clause would do, none is the one.
func TestSeveralSingleRepairs(t *testing.T) {
	tuples, summary := annotated(t, petBenchmark(t), petRollouts(
		"SELECT name FROM pet WHERE weight = 9.5 ORDER BY weight DESC LIMIT 1",
		"SELECT name FROM pet WHERE weight > 3 ORDER BY weight LIMIT 1"), DefaultOptions())
	if summary.SeveralSingle != 1 || summary.Repairs[operatorFirst] != 1 || tuples[0].Clause != "WHERE" {
		t.Errorf("%+v", summary)
	}
}

// TestRestatements gives the rules' texts, and queries that they leave alone.
func TestRestatements(t *testing.T) {
	for _, c := range []struct{ name, gold, wrong, want string }{
		{"a chain of tables", "SELECT a.x FROM a JOIN b ON a.id = b.aid JOIN c ON b.cid = c.id WHERE c.z = 1 AND a.y = 2", "SELECT x FROM a",
			"SELECT a.x FROM a WHERE a.id IN (SELECT b.aid FROM b JOIN c ON b.cid = c.id WHERE c.z = 1) AND a.y = 2"},
		{"two tables, each by itself", "SELECT a.x FROM a JOIN b ON a.b = b.id JOIN c ON a.c = c.id WHERE b.y = 1 AND c.z = 2", "SELECT x FROM a",
			"SELECT a.x FROM a WHERE a.b IN (SELECT b.id FROM b WHERE b.y = 1) AND a.c IN (SELECT c.id FROM c WHERE c.z = 2)"},
		{"a condition on both sides", "SELECT a.x FROM a JOIN b ON a.b = b.id WHERE b.y = 1 OR a.y = 2", "SELECT x FROM a",
			"SELECT a.x FROM a WHERE a.b IN (SELECT b.id FROM b WHERE b.y = 1 OR a.y = 2)"},
		{"a second key correlates", "SELECT a.x FROM a JOIN b ON a.b = b.id AND a.c = b.c WHERE b.y = 1", "SELECT x FROM a",
			"SELECT a.x FROM a WHERE a.b IN (SELECT b.id FROM b WHERE a.c = b.c AND b.y = 1)"},
		{"a bridge between two that stay", "SELECT a.x FROM a JOIN b ON a.id = b.a JOIN c ON b.c = c.id WHERE b.y = 1", "SELECT x FROM a, c",
			"SELECT a.x FROM a JOIN c WHERE a.id IN (SELECT b.a FROM b WHERE b.c = c.id AND b.y = 1)"},
		{"a key of a table that goes", "SELECT b.aid, count(*) FROM a JOIN b ON a.id = b.aid GROUP BY b.aid", "SELECT id FROM a",
			"SELECT a.id, count(*) FROM a GROUP BY a.id"},
		{"a column that no other equals", "SELECT b.y FROM a JOIN b ON a.id = b.aid", "SELECT id FROM a", ""},
		{"all columns", "SELECT * FROM a JOIN b ON a.id = b.aid", "SELECT * FROM a", ""},
		{"an outer join", "SELECT a.x FROM a LEFT JOIN b ON a.id = b.aid WHERE b.y = 1", "SELECT x FROM a", ""},
		{"a product", "SELECT a.x FROM a JOIN b WHERE b.y = 1", "SELECT x FROM a", ""},
		{"an intersection", "SELECT x FROM a WHERE y = 1 INTERSECT SELECT x FROM a WHERE y = 2", "SELECT x FROM a",
			"SELECT x FROM a WHERE y = 1 AND x IN (SELECT x FROM a WHERE y = 2)"},
		{"a union", "SELECT x FROM a WHERE y = 1 UNION SELECT x FROM a WHERE y = 2", "SELECT x FROM a", ""},
		{"a set operation on both sides", "SELECT x FROM a INTERSECT SELECT x FROM b", "SELECT x FROM a UNION SELECT x FROM b", ""},
	} {
		var got []string
		for _, s := range restatements(statementOf(t, c.gold, Top), statementOf(t, c.wrong, Top)) {
			got = append(got, s.text)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %s\ngives %s\nwant  %s", c.name, c.gold, strings.Join(got, "; "), c.want)
		}
	}
}

// TestSingleKeepsOtherClauses: on real predictions, what stands around a clause
// that was repaired alone is the prediction's, byte for byte, but for names behind
// it that would mean something else.
func TestSingleKeepsOtherClauses(t *testing.T) {
	skipWalk(t)
	bench, err := data.OpenBenchmark(shared(t, "spider"), "spider")
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	o := DefaultOptions()
	o.Injection = false
	o.Granularity = Top
	same, restated := 0, 0
	rollouts := every(5, withRows(bench, data.ReadRollouts(shared(t, "predictions", "spider_dev.jsonl"), bench, "dev")))
	summary, err := Run(t.Context(), bench, rollouts, o, func(tuple data.Tuple) error {
		if tuple.Operator != operatorSingle || tuple.Root.Start == tuple.Root.End {
			return nil
		}
		behind := func(query, clause string) string {
			return strings.TrimRight(query[len(tuple.Prefix)+len(clause):], "; \n")
		}
		was, is := behind(tuple.SQLRejected, tuple.Rejected), behind(tuple.SQLChosen, tuple.Chosen)
		switch {
		case was == is, tuple.Prefix+was == strings.TrimRight(tuple.SQLChosen, "; \n"): // changed, left out
			same++
		case tuple.Clause == "SELECT" || tuple.Clause == "FROM":
			restated++
		default:
			t.Errorf("%s: %q became %q in %s", tuple.Clause, was, is, tuple.SQLChosen)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d as they were, %d with names restated; %v", same, restated, summary.Repairs)
	if same < 10*restated || same < 100 {
		t.Errorf("%d as they were, %d with names restated", same, restated)
	}
	checkYield(t, summary, 0.99, 0.56)
}

// checkYield wants a share of the failing queries repaired, and one traced to a
// single clause. What is correct once the text behind the query is cut is no failing
// query.
func checkYield(t *testing.T, s Summary, repaired, single float64) {
	t.Helper()
	failing := float64(s.Failing - s.Reasons[RunOn])
	if float64(s.Repaired) < repaired*failing || float64(s.Repairs[operatorSingle]) < single*failing {
		t.Errorf("of %v failing queries %d are repaired, %d by one clause: %v", failing, s.Repaired, s.Repairs[operatorSingle], s.Reasons)
	}
}

// TestSuperheroRepairs does the same on the one database of BIRD dev that is here.
func TestSuperheroRepairs(t *testing.T) {
	skipWalk(t)
	bench := openShared(t, "bird")
	o := DefaultOptions()
	o.Injection = false
	rollouts := func(yield func(data.Rollout, error) bool) {
		for r, err := range every(4, withRows(bench, data.ReadRollouts(shared(t, "predictions", "bird_dev.jsonl"), bench, "dev"))) {
			isSlow := strings.Contains(r.Gold, "EXISTS") // seconds a query, without indexes
			if !isSlow && !yield(r, err) {
				return
			}
		}
	}
	summary, err := Run(t.Context(), bench, rollouts, o, func(data.Tuple) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	checkYield(t, summary, 0.97, 0.47)
}
