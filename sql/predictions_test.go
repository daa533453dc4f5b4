package sql

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// predictions calls visit with every sampled query on Spider and BIRD dev.
// wrong says that its result was found to differ from gold's.
func predictions(t *testing.T, visit func(db, gold, text string, wrong bool)) {
	for _, file := range []string{"spider_dev.jsonl", "bird_dev.jsonl"} {
		f, err := os.Open(filepath.Join(sharedData(t), "predictions", file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var question struct {
				DBID  string `json:"db_id"`
				Gold  string
				Preds map[string]struct {
					SQL string
					Set *int
				}
			}
			if err := json.Unmarshal(lines.Bytes(), &question); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, p := range question.Preds {
				visit(question.DBID, question.Gold, p.SQL, p.Set != nil && *p.Set == 0)
			}
		}
	}
}

// TestParseAgreesWithSQLite checks that Parse accepts a model's output exactly
// when SQLite finds no fault of syntax in it.
func TestParseAgreesWithSQLite(t *testing.T) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	seen := map[string]bool{}
	predictions(t, func(_, _, text string, _ bool) {
		if seen[text] {
			return
		}
		seen[text] = true
		checkPartition(t, text)
		if units := Clauses(text); len(units) > 0 {
			text = text[:units[len(units)-1].End] // SQLite compiles the first statement alone
		}
		_, err := Parse(text)
		if err != nil && strings.Contains(err.Error(), "no statement") {
			return // SQLite compiles white space and comments to nothing
		}
		if refused := sqliteRefuses(db, text); refused != (err != nil) {
			t.Errorf("%s\n\tParse says %v, SQLite refuses: %v", text, err, refused)
		}
		if err == nil {
			checkRoundTrip(t, text)
		}
	})
}

// sqliteRefuses reports that SQLite finds a fault of syntax in the text. Other
// faults, such as a table that does not exist, come to light later.
func sqliteRefuses(db *sql.DB, text string) bool {
	statement, err := db.Prepare(text)
	if err == nil {
		statement.Close()
		return false
	}
	for _, fault := range []string{"syntax error", "incomplete input", "unrecognized token", "before", "unknown join type"} {
		if strings.Contains(err.Error(), fault) {
			return true
		}
	}
	return false
}

// TestCanonicalIsSound checks that a query that ran and gave another result than
// gold has another canonical form.
func TestCanonicalIsSound(t *testing.T) {
	schemas := spiderSchemas(t)
	equal := 0
	predictions(t, func(db, gold, text string, wrong bool) {
		n, err := Parse(text)
		if err != nil {
			return
		}
		c := Canonical(n, schemas[db])
		checkOrigins(t, n, c)
		if !Equal(c, Canonical(mustParse(t, gold), schemas[db])) {
			return
		}
		equal++
		if wrong {
			t.Errorf("%s\n%s\n\tdiffer in their results but not in canonical form", gold, text)
		}
	})
	t.Logf("%d predictions have gold's canonical form", equal)
}
