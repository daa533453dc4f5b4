package sql

import (
	"database/sql"
	"flag"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// How many random statements and mutants of statements the long tests try:
//
//	go test ./sql -run 'AgreesOnMutants|GiveEqualResults' -v -mutants 100000
var mutants = flag.Int("mutants", 5000, "random statements that a test tries")

// TestParseAgreesOnMutants checks that Parse accepts what SQLite's grammar accepts
// and nothing else.
func TestParseAgreesOnMutants(t *testing.T) {
	t.Parallel()
	db := openToys(t, 1)
	rng := rand.New(rand.NewPCG(7, 11))
	seeds := statements(t)
	for _, q := range goldQueries(t) {
		seeds = append(seeds, q.sql)
	}
	counts := map[string]int{}
	for range *mutants {
		var text string
		if rng.IntN(2) == 0 {
			text = writeStatement(rng, toySources())
		} else {
			text = seeds[rng.IntN(len(seeds))]
		}
		if rng.IntN(5) > 0 {
			other := seeds[rng.IntN(len(seeds))]
			if rng.IntN(2) == 0 {
				other = writeStatement(rng, toySources())
			}
			text = mutate(rng, text, other)
		}
		counts[checkAgreement(t, db, text)]++
	}
	t.Logf("%v", counts)
}

// checkAgreement checks that Parse judges the first statement of text as SQLite
// does and that what parses prints as a statement that SQLite judges alike. It
// returns what the verdict was.
func checkAgreement(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	checkPartition(t, text)
	text = firstStatement(text)
	n, err := Parse(text)
	for _, message := range []string{"no statement", "not a SELECT", "empty name before a dot"} {
		if err != nil && strings.Contains(err.Error(), message) {
			return message
		}
	}
	var fault error
	unprepared := prepare(db, text)
	if unprepared != nil {
		fault = grammarFault(db, text)
	}
	switch {
	case err == nil && fault != nil && !strings.Contains(fault.Error(), "all VALUES must have"): // in WITH it says so later
		t.Errorf("%q\n\tparses, but SQLite's grammar says %v", text, fault)
	case err != nil && unprepared == nil:
		t.Errorf("%q\n\tSQLite prepares it, but Parse says %v", text, err)
	case err != nil && fault == nil:
		t.Errorf("%q\n\tSQLite says %v, but Parse says %v", text, unprepared, err)
	}
	if err != nil {
		return "refused"
	}
	checkRoundTrip(t, text)
	checkPredicates(t, n, text, Predicates(n, text))
	Canonical(n, nil)
	printed := Render(n) // without hints, which can be wrong
	if again := prepare(db, printed); (again == nil) != (unprepared == nil) && !(again == nil && hint.MatchString(text)) {
		t.Errorf("%q: %v\n\tprints as %s\n\t%v", text, unprepared, printed, again)
	}
	if unprepared != nil {
		return "no such name"
	}
	return "prepared"
}

var hint = regexp.MustCompile(`(?i)MATERIALIZED|INDEXED`)

// firstStatement is the part of a text that SQLite prepares.
func firstStatement(text string) string {
	if units := Clauses(text); len(units) > 0 {
		return text[:units[len(units)-1].End]
	}
	return text
}

// prepare returns SQLite's objection to the statement, nil if it has none.
func prepare(db *sql.DB, text string) error {
	statement, err := db.Prepare(text)
	if err == nil {
		statement.Close()
	}
	return err
}

// grammarFault returns the objection of SQLite's grammar to the statement, nil if
// it has none. SQLite resolves the names in a view only once the view is used, so
// all that can go wrong with creating one is the grammar.
func grammarFault(db *sql.DB, text string) error {
	err := prepare(db, "CREATE TEMP VIEW v AS "+strings.TrimLeft(text, "; \n"))
	if err != nil && strings.Contains(err.Error(), "parameters are not allowed") {
		// The statement was read to its end, and other faults hide behind this one.
		if err = prepare(db, text); err == nil || !strings.Contains(err.Error(), "clause should come after") {
			return nil
		}
	}
	return err
}
