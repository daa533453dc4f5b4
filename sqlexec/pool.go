package sqlexec

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// pool holds the worker processes of the program, which all databases share: as
// many as there are processors, started when first needed. A worker that failed
// is replaced. There is none while no database is open.
type pool struct {
	turns chan struct{} // one is taken while a query runs

	mu    sync.Mutex
	idle  []*worker // the one used last, whose caches are warm, at the end
	users int       // open databases
}

var workers = sync.OnceValue(func() *pool {
	return &pool{turns: make(chan struct{}, runtime.GOMAXPROCS(0))}
})

// attempts is how often a query may lose its worker through no fault that is known
// to be its own: the worker crashed, or something else killed it.
const attempts = 3

// run runs a query on some worker. The error is an *Error, ctx's, or says why
// there is no worker.
func (p *pool) run(ctx context.Context, j job) (*outcome, error) {
	var end *os.ProcessState
	for range attempts {
		out, died, err := p.try(ctx, []job{j})
		if err == nil {
			return &out[0], nil
		}
		if err != errLost {
			return nil, err
		}
		end = died
	}
	return nil, crashed(end)
}

// try runs queries on some worker, one behind the other. Where that ends the worker,
// all of them are lost, and it tells how the worker ended.
func (p *pool) try(ctx context.Context, jobs []job) (out []outcome, died *os.ProcessState, err error) {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	defer func() { <-p.turns }()

	w, err := p.take()
	if err != nil {
		return nil, nil, err
	}
	if out, err = w.run(ctx, jobs); err != nil {
		return nil, w.stop(), err
	}
	p.put(w)
	return out, nil, nil
}

// crashed is the failure of a query that ended every worker it ran on.
func crashed(end *os.ProcessState) *Error {
	failure := Runtime
	if s, ok := end.Sys().(syscall.WaitStatus); ok && s.Signal() == syscall.SIGKILL {
		failure = Memory // so the system ends who takes too much
	}
	return &Error{failure, fmt.Sprintf("%d worker processes that ran the query ended: %v", attempts, end)}
}

func (p *pool) take() (*worker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return w, nil
	}
	return startWorker()
}

func (p *pool) put(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, w)
	p.stopUnused()
}

// use counts a database that opens (1) or closes (-1).
func (p *pool) use(change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users += change
	p.stopUnused()
}

func (p *pool) stopUnused() {
	if p.users > 0 {
		return
	}
	for _, w := range p.idle {
		w.stop()
	}
	p.idle = nil
}
