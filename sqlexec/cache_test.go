package sqlexec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestCacheRunsAQueryOnce(t *testing.T) {
	d, c := openShop(t), NewCache(1<<20)
	results := make([]*Result, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Add(1)
		go func() {
			defer wg.Done()
			// A random value differs between two runs.
			r, err := c.Query(context.Background(), d, "SELECT random() FROM item a, item b, item c")
			if err != nil {
				t.Error(err)
			}
			results[i] = r
		}()
	}
	wg.Wait()
	for _, r := range results {
		if r.Rows[0][0] != results[0].Rows[0][0] {
			t.Fatal("two runs of one query")
		}
	}
	if s := c.Stats(); s.Misses != 1 || s.Hits != 7 {
		t.Errorf("stats %+v", s)
	}
}

func TestCacheKeepsFailuresNotCancels(t *testing.T) {
	d, c := openShop(t), NewCache(1<<20)
	for range 2 {
		var e *Error
		if _, err := c.Query(context.Background(), d, "SELECT nope"); !errors.As(err, &e) {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Misses != 1 {
		t.Errorf("a failure ran again: %+v", s)
	}

	// The first caller is cancelled; the one waiting for it must get the result.
	slow := "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r LIMIT 300000) SELECT count(*) FROM r"
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error)
	go func() {
		_, err := c.Query(ctx, d, slow)
		first <- err
	}()
	for c.Stats().Misses < 2 {
		time.Sleep(time.Millisecond)
	}
	second := make(chan error)
	go func() {
		_, err := c.Query(context.Background(), d, slow)
		second <- err
	}()
	cancel()
	if err := <-first; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Errorf("cancelled by a stranger: %v", err)
	}
}

func TestCacheStaysInItsBytes(t *testing.T) {
	d, c := openShop(t), NewCache(20_000)
	query := func(i int) string { return fmt.Sprintf("SELECT %d, printf('%%.*c', 3000, 'x')", i) }
	for i := range 50 {
		if _, err := c.Query(context.Background(), d, query(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Query(context.Background(), d, query(0)); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Bytes > 20_000 {
			t.Fatalf("%d bytes kept", s.Bytes)
		}
	}
	// Query 0 was always the last used, so it was never dropped.
	if s := c.Stats(); s.Misses != 50 {
		t.Errorf("stats %+v", s)
	}
	if _, err := c.Query(context.Background(), d, "SELECT printf('%.*c', 30000, 'x')"); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Bytes > 20_000 || len(c.entries) != c.recent.Len() {
		t.Errorf("after one too large: %+v", s)
	}
}
