package annotate

import (
	"context"
	"crypto/sha256"
	"iter"
	"strings"
	"sync"

	"caper/data"
	"caper/sqlexec"
)

// queueLength bounds the rollouts that wait or are at work, per worker: memory
// does not grow with the input, and one slow query does not hold the others up.
const queueLength = 16

// job is a rollout on its way through the workers.
type job struct {
	rollout data.Rollout
	out     *outcome
	err     error
	done    chan struct{}
}

// Run annotates rollouts and hands every tuple to emit, in the order of the
// rollouts. The tuples and their order are the same for any number of workers.
// It stops at the first error: of the rollouts, of a database, of emit, or of
// ctx; the tuples emitted until then are complete. A query never causes an
// error.
func Run(ctx context.Context, bench *data.Benchmark, rollouts iter.Seq2[data.Rollout, error], o Options,
	emit func(data.Tuple) error) (Summary, error) {
	if err := o.check(); err != nil {
		return Summary{}, err
	}
	a := &annotator{Options: o, bench: bench, cache: sqlexec.NewCache(o.CacheBytes)}
	ctx, cancel := context.WithCancel(ctx)
	work := make(chan *job)
	ordered := make(chan *job, queueLength*o.Workers)
	var group sync.WaitGroup
	group.Go(func() { a.read(ctx, rollouts, work, ordered) })
	for range o.Workers {
		group.Go(func() {
			for j := range work {
				j.out, j.err = a.rollout(ctx, j.rollout)
				close(j.done)
			}
		})
	}
	summary, err := a.collect(ctx, ordered, emit)
	cancel()
	for range ordered { // lets the reader go on to its end
	}
	group.Wait()
	return summary, err
}

// read hands out the rollouts: to the workers, and to the collector in order. A
// query seen before for the same question is not annotated again.
func (a *annotator) read(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], work, ordered chan<- *job) {
	defer close(ordered)
	defer close(work)
	seen := make(map[[16]byte]bool)
	for r, err := range rollouts {
		j := &job{rollout: r, err: err, done: make(chan struct{})}
		key := rolloutKey(r)
		settled := err != nil || seen[key]
		if settled {
			j.out = &outcome{reason: Duplicate}
			close(j.done)
		}
		seen[key] = true
		select {
		case ordered <- j:
		case <-ctx.Done():
			return
		}
		if settled {
			continue
		}
		select {
		case work <- j:
		case <-ctx.Done():
			return
		}
	}
}

// rolloutKey names a rollout by its content.
func rolloutKey(r data.Rollout) [16]byte {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		r.Dataset, r.DBID, r.QuestionID.String(), r.Question, r.Evidence, r.Gold, r.SQL}, "\x00")))
	return [16]byte(sum[:16])
}

// collect emits the tuples in order, each content once.
func (a *annotator) collect(ctx context.Context, ordered <-chan *job, emit func(data.Tuple) error) (Summary, error) {
	summary := newSummary()
	seen := make(map[string]bool)
	for j := range ordered {
		select {
		case <-j.done:
		case <-ctx.Done():
			return summary, ctx.Err()
		}
		if j.err != nil {
			return summary, j.err
		}
		summary.addRollout(j.out)
		for _, p := range j.out.tuples {
			t := p.Tuple
			t.ID = t.ContentID()
			if seen[t.ID] {
				summary.DuplicateTuples++
				continue
			}
			seen[t.ID] = true
			if t.Validate() != nil {
				summary.InvalidTuples++
				continue
			}
			if err := emit(t); err != nil {
				return summary, err
			}
			summary.addTuple(p, a.Alpha)
		}
	}
	return summary, ctx.Err()
}
