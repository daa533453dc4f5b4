package sqlexec

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"
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
