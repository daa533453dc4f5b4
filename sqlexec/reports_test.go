package sqlexec

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Public reports about other programs that run SQLite queries from Go.

// TestInterruptHitsOnlyItsQuery: cancelling as a query ends must not stop the next
// one (mattn/go-sqlite3 report 681, an interrupt for one query stops another on the
// same connection).
func TestInterruptHitsOnlyItsQuery(t *testing.T) {
	d := openShop(t)
	for range 300 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		if _, err := d.Query(ctx, "SELECT count(*) FROM item a, item b"); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := d.Query(context.Background(), "SELECT count(*) FROM item a, item b, item c"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBusyDatabase: another program's lock neither delays a query nor keeps a
// context from ending it (mattn/go-sqlite3 report 863, a deadline is ignored while
// the database is busy).
func TestBusyDatabase(t *testing.T) {
	path := writeDatabase(t, shop...)
	writer, err := sql.Open("sqlite3", "file:"+escapePath(path))
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	writer.SetMaxOpenConns(1)
	for _, s := range []string{"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = MEMORY", "BEGIN EXCLUSIVE"} {
		if _, err := writer.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(path, Limits{Timeout: time.Hour, Rows: 10, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	honest(t, d)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.Query(ctx, endless+"SELECT count(*) FROM r"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("have %v, want the context's error", err)
	}
}

// TestCancelOfAFinishedQuery: a cancel that races with a result leaves all of the
// result or none (tailscale/sqlite changes 85 and 86).
func TestCancelOfAFinishedQuery(t *testing.T) {
	d := openShop(t)
	var results, cancels int
	for i := range 400 {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Microsecond / 4)
			cancel()
		})
		r, err := d.Query(ctx, "SELECT id, name FROM item ORDER BY id")
		switch {
		case err == nil && len(r.Rows) == 3 && r.Rows[2][0] == int64(3):
			results++
		case r == nil && errors.Is(err, context.Canceled):
			cancels++
		default:
			t.Fatalf("have %v, %v", r, err)
		}
		wg.Wait()
		// What was returned stays as it is while the worker goes on.
		if r != nil {
			honest(t, d)
			if r.Rows[0][1] != "tea" {
				t.Fatalf("the result changed: %v", r.Rows)
			}
		}
	}
	t.Logf("%d results, %d cancels", results, cancels)
}

// TestReport56DoubleQuotedStrings: "text" is a string where no column has the name, in
// queries and in the views of a file (northwind-SQLite3 change 20).
func TestReport56DoubleQuotedStrings(t *testing.T) {
	d, err := Open(writeDatabase(t, append(shop, `CREATE VIEW teas AS SELECT * FROM item WHERE name = "tea"`)...), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := d.Query(context.Background(), `SELECT id, "a string", "NAME" FROM teas WHERE sold > "2020"`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]Value{{int64(1), "a string", "tea"}}, r.Rows); diff != "" {
		t.Error(diff)
	}
}

// TestReport69QueriesRunAtTheSameTime: queries are run by as many processes as there are
// processors (verl report 2079, a single thread for all).
func TestReport69QueriesRunAtTheSameTime(t *testing.T) {
	want := cap(workers().turns)
	if want < 2 {
		t.Skip("one processor")
	}
	d, err := Open(writeDatabase(t, shop...), Limits{Timeout: time.Hour, Rows: 10, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range want {
		wg.Go(func() { d.Query(ctx, endless+"SELECT count(*) FROM r") })
	}
	atOnce := func() (n int) {
		for _, pid := range children(t) {
			if busy(pid) {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(20 * time.Second); atOnce() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d queries run", atOnce(), want)
		}
	}
}
