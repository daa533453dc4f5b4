package solve

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"time"

	"caper/data"
)

// streamOf keys the random numbers of a question by its content.
func streamOf(q data.Question) uint64 {
	h := fnv.New64a()
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], uint64(len(q.DBID)))
	h.Write(id[:])
	h.Write([]byte(q.DBID + q.Question + "\x00" + q.Evidence))
	return h.Sum64()
}

// Generated is a question's pool with what it cost.
type Generated struct {
	Pool
	Cost Cost
}

// Generate asks generators one after the other and adds what they write to a pool, which
// may have candidates already.
func Generate(ctx context.Context, pool Pool, generators []Generator) (Generated, error) {
	began := time.Now()
	out := Generated{}
	all := pool.Candidates
	for _, g := range generators {
		candidates, cost, err := g.Generate(ctx, pool.Question)
		cost.Milliseconds = 0 // of the whole, below
		out.Cost.Add(cost)
		if err != nil {
			return out, err
		}
		all = append(all[:len(all):len(all)], candidates...)
	}
	out.Pool = NewPool(pool.Question, all)
	out.Cost.since(began)
	return out, nil
}

// Lines are the candidates; the first has what the pool cost. A question for which
// nothing was written has none.
func (g Generated) Lines() ([]data.Rollout, error) {
	lines := make([]data.Rollout, len(g.Candidates))
	for i := range g.Candidates {
		var fields map[string]any
		if i == 0 {
			fields = map[string]any{"cost": g.Cost}
		}
		var err error
		if lines[i], err = g.Candidates[i].line(fields); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
