package sqlexec

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Cache keeps results by the content they depend on: the database file, its
// limits and the query. It is bounded in bytes and drops what was used least
// recently. It is safe for concurrent use, and runs a query once however many ask
// for it at the same time.
type Cache struct {
	// Disk, if there is one, is asked for what is not here. It is set before the
	// first query.
	Disk *DiskCache

	maxBytes int

	mu      sync.Mutex
	bytes   int
	entries map[cacheKey]*cacheEntry
	recent  list.List // finished entries (*cacheEntry), the latest used in front
	stats   CacheStats
}

// CacheStats counts what a cache did.
type CacheStats struct {
	// Hits were answered from memory; Misses ran the query or found it on disk.
	Hits, Misses int
	// Bytes is what the kept results take now.
	Bytes int
}

type cacheKey struct{ database, query string }

type cacheEntry struct {
	key   cacheKey
	place *list.Element
	done  chan struct{} // closed when record and err are set
	bytes int

	record Record
	err    error
}

// NewCache returns a cache that holds results of at most maxBytes.
func NewCache(maxBytes int) *Cache {
	return &Cache{maxBytes: maxBytes, entries: map[cacheKey]*cacheEntry{}}
}

// Query is db.Query through the cache. Failures of the query are kept too; the
// end of ctx and faults of the file are not. Texts of one spelling (spelling.go) share
// a result, so the names of its columns may be those of another text; results share
// their bytes: callers must not change them.
func (c *Cache) Query(ctx context.Context, db *Database, query string) (*Result, error) {
	r, err := c.Record(ctx, db, query)
	if err != nil {
		return nil, err
	}
	return r.Result(), nil
}

// Record is Query's result, packed.
func (c *Cache) Record(ctx context.Context, db *Database, query string) (Record, error) {
	key := cacheKey{db.identity, spelling(query)}
	for {
		e, mine := c.entry(key)
		if mine {
			e.record, e.err = c.run(ctx, db, query)
			c.finish(e)
			return e.record, e.err
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// The one who ran it may have been cancelled; then it is our turn.
		if e.err == nil || isFailure(e.err) {
			return e.record, e.err
		}
	}
}

// run runs a query, or finds its outcome on disk.
func (c *Cache) run(ctx context.Context, db *Database, query string) (Record, error) {
	run := func() (Record, error) { return db.record(ctx, query) }
	if c.Disk == nil {
		return run()
	}
	return c.Disk.query(db, query, run)
}

// errNotRun is the end of an entry that a batch did not get to.
var errNotRun = errors.New("the query was not run")

// Prefetch runs those of several queries that are not here yet in one round trip, as
// far as that goes without trouble: a Query of each may follow, and finds them. With
// a disk cache it leaves them to Query.
func (c *Cache) Prefetch(ctx context.Context, db *Database, queries []string) {
	if c.Disk != nil {
		return
	}
	var entries []*cacheEntry
	var texts []string
	for _, q := range queries {
		if e, mine := c.absent(cacheKey{db.identity, spelling(q)}); mine {
			entries, texts = append(entries, e), append(texts, q)
		}
	}
	if len(texts) == 0 {
		return
	}
	outcomes := db.batch(ctx, texts)
	for i, e := range entries {
		e.err = errNotRun
		if outcomes != nil {
			e.record, e.err = db.outcome(&outcomes[i])
		}
		c.finish(e)
	}
}

// Stats returns what the cache did so far.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Bytes = c.bytes
	return s
}

// entry finds the key's entry, or makes one that the caller has to finish.
func (c *Cache) entry(key cacheKey) (e *cacheEntry, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.stats.Hits++
		if e.place != nil {
			c.recent.MoveToFront(e.place)
		}
		return e, false
	}
	return c.make(key), true
}

// absent makes the key's entry, if there is none.
func (c *Cache) absent(key cacheKey) (e *cacheEntry, made bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; ok {
		return nil, false
	}
	return c.make(key), true
}

func (c *Cache) make(key cacheKey) *cacheEntry {
	c.stats.Misses++
	e := &cacheEntry{key: key, done: make(chan struct{})}
	c.entries[key] = e
	return e
}

// finish publishes an entry, keeps it if it is worth keeping, and makes room.
func (c *Cache) finish(e *cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(e.done)
	e.bytes = entryBytes(e)
	if e.err != nil && !isFailure(e.err) || e.bytes > c.maxBytes {
		delete(c.entries, e.key)
		return
	}
	e.place = c.recent.PushFront(e)
	for c.bytes += e.bytes; c.bytes > c.maxBytes; {
		oldest := c.recent.Remove(c.recent.Back()).(*cacheEntry)
		delete(c.entries, oldest.key)
		c.bytes -= oldest.bytes
	}
}

// isFailure tells what the query caused from what happened around it.
func isFailure(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

// entryBytes estimates the memory of an entry.
func entryBytes(e *cacheEntry) int {
	const perEntry = 400
	return perEntry + len(e.key.query) + len(e.record)
}
