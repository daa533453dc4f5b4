package sql

import (
	"slices"
	"strings"
	"testing"
)

// TestQueriesSurvivePrinting takes every gold query of Spider and BIRD and every
// published prediction, and checks that it parses if SQLite prepares it, that its
// units partition it, and that the tree's print means the same: SQLite compiles
// it to the same program. Gold runs too, where the database has rows.
func TestQueriesSurvivePrinting(t *testing.T) {
	t.Parallel()
	dbs := openDatabases(t)
	counts := map[string]int{}
	everyQuery(t, func(benchmark, name, text string, gold bool) {
		db := dbs.get(benchmark, name)
		if db == nil {
			counts["no database"]++
			return
		}
		counts[checkPrinting(t, db, text, gold)]++
	})
	t.Logf("%v", counts)
}

func checkPrinting(t *testing.T, db *database, text string, run bool) string {
	t.Helper()
	if verdict := checkAgreement(t, db.DB, text); verdict != "prepared" {
		return verdict
	}
	n := mustParse(t, firstStatement(text))
	text, printed := n.Text(text), Render(n) // without a semicolon, behind which the driver would go on
	before, err := program(db.DB, text)
	if err != nil {
		t.Errorf("%s\n\t%v", text, err)
	}
	after, err := program(db.DB, printed)
	if err != nil {
		t.Errorf("%s\n\tprints as %s\n\t%v", text, printed, err)
		return "refused"
	}
	if before != after {
		t.Errorf("%s\n\tprints as %s\n\t%s\nbecomes\n%s", text, printed, before, after)
	}
	if !run || !db.hasRows {
		return "compiled alike"
	}
	want, errWant := rows(db.DB, text)
	if errWant == errSlow {
		return "compiled alike"
	}
	got, err := rows(db.DB, printed)
	if (err == nil) != (errWant == nil) || !slices.Equal(got, want) {
		t.Errorf("%s: %v\n\tprints as %s: %v\n\t%d rows become %d others", text, errWant, printed, err, len(want), len(got))
	}
	return "gave the same rows"
}

// everyQuery calls visit with every different query of the shared data.
func everyQuery(t testing.TB, visit func(benchmark, db, text string, gold bool)) {
	seen := map[[2]string]bool{}
	once := func(benchmark, db, text string, gold bool) {
		if key := [2]string{db, text}; !seen[key] {
			seen[key] = true
			visit(benchmark, db, text, gold)
		}
	}
	for _, q := range goldQueries(t) {
		benchmark, _, _ := strings.Cut(q.file, "/")
		once(benchmark, q.db, q.sql, true)
	}
	predictions(t, func(file, db, _, text string, _ bool) {
		benchmark, _, _ := strings.Cut(file, "_")
		once(benchmark, db, text, false)
	})
}
