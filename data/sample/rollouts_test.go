package sample

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"caper/data"
	csql "caper/sql"
)

// outcome is what running a rollout showed.
type outcome string

const (
	right  outcome = "right"
	wrong  outcome = "wrong"
	failed outcome = "failed"
	hung   outcome = "hung"
)

// patience is how long a query may run before it counts as endless: no other comes
// near it, however busy the machine.
const patience = 3 * time.Second

// judge runs a candidate beside the gold query.
func judge(t *testing.T, connection *sql.DB, gold, candidate string) outcome {
	t.Helper()
	want, err := run(context.Background(), connection, gold, 1<<20)
	if err != nil {
		t.Fatalf("%s: %v", gold, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	have, err := run(ctx, connection, candidate, 10000)
	switch {
	case ctx.Err() != nil:
		return hung
	case err != nil:
		return failed
	case sameRows(want, have, strings.Contains(gold, "ORDER BY")):
		return right
	}
	return wrong
}

func TestRolloutsMix(t *testing.T) {
	if testing.Short() {
		t.Skip("a long walk on one goroutine")
	}
	summary, err := WriteRollouts(t.Context(), bench(t), RolloutOptions{Seed: 1, Splits: []string{Test}, Samples: 1})
	if err != nil {
		t.Fatal(err)
	}
	endless := summary.Faults["timeout"]
	outcomes, kinds := map[outcome]int{}, map[csql.ClauseKind]int{}
	for r, err := range data.ReadRollouts(RolloutPath(bench(t), Test), nil, Test) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.Source, "simulated-") {
			t.Fatalf("source %q does not say simulated", r.Source)
		}
		got := judge(t, connect(t, r.DBID), r.Gold, r.SQL)
		outcomes[got]++
		if got == wrong {
			for _, k := range divergent(r.Gold, r.SQL) {
				kinds[k]++
			}
		}
	}
	total := summary.Rollouts[Test]
	if share := float64(outcomes[right]) / float64(total); share < 0.48 || share > 0.62 {
		t.Errorf("%.3f of the rollouts are right, want about 0.55: %v", share, outcomes)
	}
	if outcomes[failed] == 0 || outcomes[failed] > total/8 {
		t.Errorf("%d of %d rollouts fail to run, want some but few", outcomes[failed], total)
	}
	if outcomes[hung] < endless || outcomes[hung] > endless+total/200 {
		t.Errorf("%d of %d rollouts hang, %d are meant to", outcomes[hung], total, endless)
	}
	for _, k := range []csql.ClauseKind{csql.ClauseSelect, csql.ClauseFrom, csql.ClauseWhere, csql.ClauseGroupBy,
		csql.ClauseHaving, csql.ClauseSetOp, csql.ClauseOrderBy, csql.ClauseLimit} {
		if kinds[k] < 40 {
			t.Errorf("%d wrong rollouts with a fault in %s, want 40 at least: %v", kinds[k], k, kinds)
		}
	}
}

// divergent lists the clause kinds whose text differs between two queries.
func divergent(gold, candidate string) []csql.ClauseKind {
	texts := func(query string) map[csql.ClauseKind]string {
		clauses := map[csql.ClauseKind]string{}
		for _, c := range csql.Clauses(query) {
			clauses[c.Kind] = strings.TrimSpace(query[c.Start:c.End])
		}
		return clauses
	}
	have, want := texts(candidate), texts(gold)
	var kinds []csql.ClauseKind
	for _, c := range catalogue {
		if have[c.kind] != want[c.kind] {
			kinds = append(kinds, c.kind)
		}
	}
	return kinds
}

// A split's rollouts do not depend on which other splits are written.
func TestRolloutsDoNotDependOnOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bench")
	if _, err := Write(t.Context(), dir, small()); err != nil {
		t.Fatal(err)
	}
	write := func(splits ...string) string {
		if _, err := WriteRollouts(t.Context(), dir, RolloutOptions{Seed: 3, Splits: splits, Samples: 2}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(RolloutPath(dir, Test))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if alone, among := write(Test), write(NewWords, Test, Dev); alone != among {
		t.Error("the test split's rollouts depend on the other splits")
	}
}

// Every rewrite and every style returns what the gold query returns.
func TestRewritesKeepTheResult(t *testing.T) {
	forms := map[string]func(*Query) bool{"exists": existsForIn, "bounds": boundsForBetween, "equals": equalsForIn, "operands": swappedOperands}
	styles := []Style{{Aliases: true}, {Flip: true}, {Inner: true}, {Lower: true}, {Aliases: true, Flip: true, Inner: true, Lower: true}}
	applied := map[string]int{}
	for _, q := range split(t, Dev) {
		connection := connect(t, q.question.DBID)
		check := func(text string) {
			if got := judge(t, connection, q.question.Query, text); got != right {
				t.Errorf("%s\nis %s, want the result of\n%s", text, got, q.question.Query)
			}
		}
		for _, style := range styles {
			check(q.plan.Query.SQL(style))
		}
		for name, form := range forms {
			if c := q.plan.Query.Clone(); form(c) {
				applied[name]++
				check(c.SQL(Style{}))
			}
		}
	}
	for name := range forms {
		if applied[name] == 0 {
			t.Errorf("no query to try the rewrite %q on", name)
		}
	}
}

// Every fault of the catalogue applies to some query, and what it makes still
// parses: broken text is a thing of its own.
func TestEveryFaultApplies(t *testing.T) {
	if testing.Short() {
		t.Skip("a long walk on one goroutine")
	}
	schemas, err := readSchemas(bench(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	questions := split(t, Test)
	for _, q := range split(t, Train) {
		if q.plan.Query.Window != nil { // test has none
			questions = append(questions, q)
		}
	}
	for _, q := range questions {
		f := &faulter{randomFor(5, q.question.Question), schemas[q.question.DBID]}
		for range 16 {
			before := q.plan.Query.SQL(Style{})
			changed, name := f.inject(q.plan.Query)
			seen[name]++
			if q.plan.Query.SQL(Style{}) != before {
				t.Fatalf("%s changed the original", name)
			}
			if _, err := csql.Parse(changed.SQL(q.plan.Style)); err != nil {
				t.Errorf("%s: %s: %v", name, changed.SQL(q.plan.Style), err)
			}
		}
	}
	for _, c := range catalogue {
		for _, f := range c.faults {
			if seen[f.name] == 0 {
				t.Errorf("fault %s never applied", f.name)
			}
		}
	}
	for _, f := range inventions {
		if seen[f.name] == 0 {
			t.Errorf("fault %s never applied", f.name)
		}
	}
}

func TestRolloutsNeedTheirBenchmark(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bench")
	if _, err := Write(t.Context(), dir, small()); err != nil {
		t.Fatal(err)
	}
	options := RolloutOptions{Seed: 1, Samples: 1}
	for name, spoil := range map[string]func() error{
		"truncated": func() error { return os.Truncate(planPath(dir, Train), 100) },
		"no plans":  func() error { return os.Remove(planPath(dir, Train)) },
		"other gold": func() error {
			return os.WriteFile(planPath(dir, Train), []byte("{\"query\":{\"select\":[]}}\n"), 0o644)
		},
		"other tables": func() error { return os.WriteFile(filepath.Join(dir, "tables.json"), []byte("[]"), 0o644) },
		"no tables":    func() error { return os.Remove(filepath.Join(dir, "tables.json")) },
	} {
		if err := spoil(); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if _, err := WriteRollouts(t.Context(), dir, options); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: have %v, want an error of one line", name, err)
		}
	}
	if _, err := WriteRollouts(t.Context(), dir, RolloutOptions{}); err == nil {
		t.Error("no samples: want an error")
	}
}
