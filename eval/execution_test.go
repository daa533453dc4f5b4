package eval

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"caper/data"
	"caper/sql"
	"caper/sqlexec"
)

// shop is a benchmark of one database and a broken one.
type shop struct{ db *sqlexec.Database }

var errDamaged = errors.New("not an SQLite database")

func (s shop) Database(dbID string) (*sqlexec.Database, error) {
	switch dbID {
	case "shop":
		return s.db, nil
	case "damaged":
		return nil, &sqlexec.FileError{Path: dbID, Err: errDamaged}
	case "starved":
		return nil, &sqlexec.FileError{Path: dbID, Err: syscall.EMFILE}
	}
	return nil, fmt.Errorf("no database %s: %w", dbID, fs.ErrNotExist)
}

func (s shop) Variants(dbID string) ([]*sqlexec.Database, error) {
	d, err := s.Database(dbID)
	return []*sqlexec.Database{d}, err
}

func (s shop) Schema(dbID string) (*sql.Schema, error) {
	d, err := s.Database(dbID)
	if err != nil {
		return nil, err
	}
	return d.Schema()
}

func (s shop) Described(dbID string) (*sql.Schema, error) { return s.Schema(dbID) }

// openShop opens a small database with a short time limit.
func openShop(t *testing.T) shop {
	t.Helper()
	return openTables(t, "CREATE TABLE item (name TEXT, price INT); INSERT INTO item VALUES ('pen', 2), ('ink', 5), ('cap', 2)")
}

// openTables writes and opens the database that a script makes.
func openTables(t *testing.T, script string) shop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.sqlite")
	connection, err := (&sqlite3.SQLiteDriver{}).Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = connection.(driver.ExecerContext).ExecContext(context.Background(), script, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.Close(); err != nil {
		t.Fatal(err)
	}
	limits := sqlexec.DefaultLimits()
	limits.Timeout = 300 * time.Millisecond
	db, err := sqlexec.Open(path, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return shop{db}
}

const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n"

// executionCases are candidates with the verdicts of the rules bird and strict.
var executionCases = []struct {
	db, gold, sql string
	bird, strict  Verdict
}{
	{"shop", "SELECT name FROM item WHERE price = 2", "SELECT name FROM item WHERE price < 3", Correct, Correct},
	{"shop", "SELECT name FROM item WHERE price = 2", "SELECT name FROM item", Wrong, Wrong},
	{"shop", "SELECT price FROM item", "SELECT DISTINCT price FROM item", Correct, Wrong},
	{"shop", "SELECT name FROM item", "SELECT nome FROM item", Failed, Failed},
	{"shop", "SELECT name FROM item", "SELECT name FROM", Failed, Failed},
	{"shop", "SELECT name FROM item", "", Failed, Failed},
	{"shop", "SELECT name FROM item", endless, TimedOut, TimedOut},
	{"shop", "SELECT nome FROM item", "SELECT name FROM item", GoldFailed, GoldFailed},
	{"shop", endless, "SELECT name FROM item", GoldTimeout, GoldTimeout},
}

// candidates repeats the cases, numbered.
func candidates(times int) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for i := range times * len(executionCases) {
			c := executionCases[i%len(executionCases)]
			r := data.Rollout{QuestionID: data.IndexID(i), DBID: c.db, Gold: c.gold, SQL: c.sql, Sample: i}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestExecute(t *testing.T) {
	databases := openShop(t)
	for _, workers := range []int{1, 3} {
		summary := NewExecutionSummary(Bird, NewGroups(nil, NewSchemas(databases)))
		options := ExecutionOptions{Rule: Bird, Workers: workers}
		err := Execute(context.Background(), databases, candidates(4), options, func(j Judged) error {
			c := executionCases[summary.Count%len(executionCases)]
			if j.Sample != summary.Count || j.Verdict != c.bird || j.Strict != c.strict {
				t.Errorf("%d workers: candidate %d is %s, strict %s; want number %d, %s, %s",
					workers, j.Sample, j.Verdict, j.Strict, summary.Count, c.bird, c.strict)
			}
			if (j.Message == "") != (j.Verdict == Correct || j.Verdict == Wrong) {
				t.Errorf("%s with message %q", j.Verdict, j.Message)
			}
			summary.Add(j)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if summary.Count != 36 || summary.Accuracy != 2.0/9 || summary.Disagree != 4 || summary.Verdicts[Failed] != 12 || summary.GoldProblems != 8 {
			t.Errorf("summary %+v", summary)
		}
	}
}

func TestExecuteStops(t *testing.T) {
	databases := openShop(t)
	options := ExecutionOptions{Rule: Bird, Workers: 2}
	broken := errors.New("line 3 is broken")
	failing := func(yield func(data.Rollout, error) bool) {
		for r := range candidates(1) {
			if !yield(r, nil) {
				return
			}
			if r.Sample == 2 {
				yield(data.Rollout{}, broken)
				return
			}
		}
	}
	seen := 0
	err := Execute(context.Background(), databases, failing, options, func(Judged) error { seen++; return nil })
	if !errors.Is(err, broken) || seen != 3 {
		t.Errorf("broken input: %v after %d candidates", err, seen)
	}
	starved := func(yield func(data.Rollout, error) bool) { yield(data.Rollout{DBID: "starved"}, nil) }
	if err := Execute(context.Background(), databases, starved, options, func(Judged) error { return nil }); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("no more files: %v", err)
	}
	missing := func(yield func(data.Rollout, error) bool) { yield(data.Rollout{DBID: "none"}, nil) }
	if err := Execute(context.Background(), databases, missing, options, func(Judged) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing database: %v", err)
	}
	full := errors.New("disk is full")
	if err := Execute(context.Background(), databases, candidates(100), options, func(Judged) error { return full }); !errors.Is(err, full) {
		t.Errorf("full disk: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = Execute(ctx, databases, candidates(100), options, func(Judged) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestJudgedLine(t *testing.T) {
	shared := data.Extra{"temperature": json.RawMessage("0.7")}
	by := ExecutionOptions{Rule: Bird}.Evaluator()
	j := Judged{Rollout: data.Rollout{Extra: shared}, By: by, Verdict: TimedOut, Message: `too "slow"`, Strict: TimedOut}
	line := j.Line()
	if len(shared) != 1 {
		t.Error("the candidate's own fields changed")
	}
	var got []string
	for field, value := range line.Extra {
		got = append(got, field+"="+string(value))
	}
	slices.Sort(got)
	want := []string{`message="too \"slow\""`, `metric="ex"`, `rule="bird"`, `strict_verdict="timeout"`, "temperature=0.7", `verdict="timeout"`}
	if !slices.Equal(got, want) {
		t.Errorf("fields %q, want %q", got, want)
	}
}
