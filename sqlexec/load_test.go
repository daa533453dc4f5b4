package sqlexec

import (
	"context"
	"sync/atomic"
	"testing"
)

// BenchmarkPredictions runs published predictions on Spider dev, as annotation and
// evaluation do: short queries on several databases, from as many goroutines as
// there are processors, without a cache.
func BenchmarkPredictions(b *testing.B) {
	all := publishedVerdicts(b, "spider")
	var next atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p := all[int(next.Add(1))%len(all)]
			p.db.Query(context.Background(), p.pred)
		}
	})
}
