package annotate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"strings"
	"sync"

	"caper/data"
	"caper/sqlexec"
)

// queueLength bounds the rollouts that wait or are at work, per worker: memory
// does not grow with the input, and one slow query does not hold the others up.
const queueLength = 1024

// job is a rollout on its way through the workers.
type job struct {
	rollout data.Rollout
	content content
	out     *outcome
	err     error
	done    chan struct{}
}

// sink takes what a run makes, in the order of the rollouts.
type sink interface {
	tuple(t data.Tuple) error
	// rolloutDone follows the tuples of each rollout.
	rolloutDone(c content, s *Summary) error
}

// Run annotates rollouts and hands every tuple to emit, in the order of the
// rollouts. The tuples and their order are the same for any number of workers.
// It stops at the first error: of the rollouts, of a database, of emit, or of
// ctx; the tuples emitted until then are complete. A query never causes an
// error.
func Run(ctx context.Context, bench *data.Benchmark, rollouts iter.Seq2[data.Rollout, error], o Options,
	emit func(data.Tuple) error) (Summary, error) {
	r, err := newRun(bench, o, emitter(emit))
	if err != nil {
		return Summary{}, err
	}
	err = r.run(ctx, rollouts)
	return r.summary, err
}

// emitter is the sink of a caller who wants tuples only.
type emitter func(data.Tuple) error

func (e emitter) tuple(t data.Tuple) error            { return e(t) }
func (e emitter) rolloutDone(content, *Summary) error { return nil }

// run is one pass over a stream of rollouts.
type run struct {
	*annotator
	sink     sink
	summary  Summary
	rollouts contents // read so far
	tuples   contents // emitted so far
}

func newRun(bench *data.Benchmark, o Options, s sink) (*run, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &run{
		annotator: &annotator{Options: o, bench: bench, cache: sqlexec.NewCache(o.CacheBytes)},
		sink:      s, summary: newSummary(), rollouts: contents{}, tuples: contents{},
	}, nil
}

func (r *run) run(ctx context.Context, rollouts iter.Seq2[data.Rollout, error]) error {
	ctx, cancel := context.WithCancel(ctx)
	work := make(chan *job)
	ordered := make(chan *job, queueLength*r.Workers)
	var group sync.WaitGroup
	group.Go(func() { r.read(ctx, rollouts, work, ordered) })
	for range r.Workers {
		group.Go(func() {
			for j := range work {
				j.out, j.err = r.rollout(ctx, j.rollout)
				close(j.done)
			}
		})
	}
	err := r.collect(ctx, ordered)
	cancel()
	for range ordered { // lets the reader go on to its end
	}
	group.Wait()
	return err
}

// read hands out the rollouts: to the workers, and to the collector in order. A
// query seen before for the same question is not annotated again.
func (r *run) read(ctx context.Context, rollouts iter.Seq2[data.Rollout, error], work, ordered chan<- *job) {
	defer close(ordered)
	defer close(work)
	for rollout, err := range rollouts {
		j := &job{rollout: rollout, content: contentOf(rollout), err: err, done: make(chan struct{})}
		settled := err != nil || !r.rollouts.add(j.content)
		if settled {
			j.out = &outcome{reason: Duplicate}
			close(j.done)
		}
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

// collect emits the tuples in order, each content once.
func (r *run) collect(ctx context.Context, ordered <-chan *job) error {
	for j := range ordered {
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if j.err != nil {
			return j.err
		}
		r.summary.addRollout(j.out)
		for _, p := range j.out.tuples {
			if err := r.emit(p); err != nil {
				return err
			}
		}
		if err := r.sink.rolloutDone(j.content, &r.summary); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (r *run) emit(p preference) error {
	t := p.Tuple
	t.ID = t.ContentID()
	if !r.tuples.add(contentOfID(t.ID)) {
		r.summary.DuplicateTuples++
		return nil
	}
	if t.Validate() != nil {
		r.summary.InvalidTuples++
		return nil
	}
	if err := r.sink.tuple(t); err != nil {
		return err
	}
	r.summary.addTuple(p, r.Alpha)
	return nil
}

// content stands for what is in a rollout or a tuple: 64 bits of a hash. Two of n
// contents share one with a chance of n^2 / 2^65, 3 in ten thousand for 100 million.
type content uint64

// contents is a set that grows by 20 to 40 bytes a member. It is all that a run
// keeps of its past.
type contents map[content]struct{}

// add reports whether c is new.
func (s contents) add(c content) bool {
	n := len(s)
	s[c] = struct{}{}
	return len(s) > n
}

func contentOf(r data.Rollout) content {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		r.Dataset, r.DBID, r.QuestionID.String(), r.Question, r.Evidence, r.Gold, r.SQL}, "\x00")))
	return content(binary.BigEndian.Uint64(sum[:]))
}

// contentOfID is the content of a tuple, whose id is its hash in hexadecimal digits.
func contentOfID(id string) content {
	var sum [8]byte
	if len(id) >= 2*len(sum) {
		hex.Decode(sum[:], []byte(id[:2*len(sum)])) // what is not hexadecimal is no id of ours
	}
	return content(binary.BigEndian.Uint64(sum[:]))
}
