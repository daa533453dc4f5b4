package sqlexec

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Cache keeps results by the content they depend on: the database file, its
// limits and the query text. It is bounded in bytes and drops what was used least
// recently. It is safe for concurrent use, and runs a query once however many ask
// for it at the same time. Results lie in it as records (cache_record.go): a
// million cells as values would be a million objects for the garbage collector.
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

	record []byte // of the result, or nil
	err    error
}

// NewCache returns a cache that holds results of at most maxBytes.
func NewCache(maxBytes int) *Cache {
	return &Cache{maxBytes: maxBytes, entries: map[cacheKey]*cacheEntry{}}
}

// Query is db.Query through the cache. Failures of the query are kept too; the
// end of ctx and faults of the file are not. Results share their bytes: callers
// must not change them.
func (c *Cache) Query(ctx context.Context, db *Database, query string) (*Result, error) {
	key := cacheKey{db.identity, query}
	for {
		e, mine := c.entry(key)
		if mine {
			r, err := c.run(ctx, db, query)
			if e.err = err; err == nil {
				e.record = packedResult(r)
			}
			c.finish(e)
			return r, err
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// The one who ran it may have been cancelled; then it is our turn.
		if e.err == nil {
			return unpacked(e.record)
		}
		if isFailure(e.err) {
			return nil, e.err
		}
	}
}

// run runs a query, or finds its outcome on disk.
func (c *Cache) run(ctx context.Context, db *Database, query string) (*Result, error) {
	run := func() (*Result, error) { return db.Query(ctx, query) }
	if c.Disk == nil {
		return run()
	}
	return c.Disk.query(db, query, run)
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
	c.stats.Misses++
	e = &cacheEntry{key: key, done: make(chan struct{})}
	c.entries[key] = e
	return e, true
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
