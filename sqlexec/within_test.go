package sqlexec

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Limits of instructions end a query at the same place on every machine, and those of
// one view of a database do not touch the other.
func TestWithin(t *testing.T) {
	d := openShop(t)
	bounded := func(change func(*Limits)) *Database {
		l := d.Limits()
		change(&l)
		b, err := d.Within(l)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const count = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT 30000) SELECT count(*) FROM r"
	endless := "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"
	few := bounded(func(l *Limits) { l.Instructions = 100_000 })
	many := bounded(func(l *Limits) { l.Instructions = 10_000_000 })
	cache := NewCache(1 << 20)
	for range 2 {
		var failed *Error
		for _, query := range []string{count, endless} {
			if _, err := cache.Query(context.Background(), few, query); !errors.As(err, &failed) || failed.Failure != Timeout {
				t.Errorf("%s: %v, want a timeout", query, err)
			}
		}
		began := time.Now()
		if _, err := cache.Query(context.Background(), many, endless); !errors.As(err, &failed) || failed.Failure != Timeout {
			t.Errorf("%s: %v, want a timeout", endless, err)
		}
		if took := time.Since(began); took >= d.Limits().Timeout {
			t.Errorf("instructions were not counted: it took %v", took)
		}
		for _, db := range []*Database{many, d} {
			if r, err := cache.Query(context.Background(), db, count); err != nil || r.Rows[0][0] != int64(30000) {
				t.Errorf("%v, %v", r, err)
			}
		}
	}

	short := bounded(func(l *Limits) { l.Rows = 1 })
	for db, want := range map[*Database]bool{short: true, d: false} {
		if r, err := cache.Query(context.Background(), db, "SELECT 1 UNION ALL SELECT 2"); err != nil || r.Truncated != want {
			t.Errorf("truncated %v, %v; want %v", r.Truncated, err, want)
		}
	}
	if _, err := d.Within(Limits{}); err == nil {
		t.Error("limits of nothing were taken")
	}
}
