package sqlexec

// #include "session.h"
import "C"

import (
	"context"
	"sync"
)

// SQLite's heap limit is one for the whole process, so a greedy query can make
// its neighbours fail. What a query may use must not depend on who runs beside it:
// one that ran out of memory runs again alone, with all of the limit to itself, and
// only that outcome counts.
var heap struct {
	once  sync.Once
	alone sync.RWMutex
	limit C.int64_t
}

// limitHeap bounds what SQLite holds for all connections together.
func limitHeap(bytes int64) {
	heap.limit = C.int64_t(bytes)
	C.heap_limit(heap.limit, 0)
}

// outOfHeap is the failure of a query that met the heap limit.
var outOfHeap = Error{Memory, "out of memory"}

// runInHeap is s.run under the heap limit.
func runInHeap(ctx context.Context, s *session, query string, l Limits, trusted bool) (*Result, error) {
	heap.once.Do(func() { limitHeap(maxHeapBytes) })

	heap.alone.RLock()
	r, err := s.run(ctx, query, l, trusted)
	heap.alone.RUnlock()
	if e, ok := err.(*Error); !ok || *e != outOfHeap {
		return r, err
	}

	heap.alone.Lock()
	defer heap.alone.Unlock()
	C.heap_limit(heap.limit, 1)
	defer C.heap_limit(heap.limit, 0)
	return s.run(ctx, query, l, trusted)
}
