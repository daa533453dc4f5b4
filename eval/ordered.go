package eval

import (
	"context"
	"iter"
)

// InOrder judges candidates, or does any other work on a sequence, with several workers
// and hands the judgements to emit in the candidates' order. It holds a thousand
// candidates or so at a time. It stops at the first error of the candidates, of judge,
// of emit or of the context.
func InOrder[C, T any](ctx context.Context, candidates iter.Seq2[C, error], workers int,
	judge func(context.Context, C) (T, error), emit func(T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pending := start(ctx, candidates, max(workers, 1), judge)
	for slot := range pending {
		r := <-slot
		if r.err == nil {
			r.err = emit(r.value)
		}
		if r.err != nil {
			cancel()
			for slot := range pending { // leave nothing running behind
				<-slot
			}
			return r.err
		}
	}
	return ctx.Err()
}

// Each is a sequence of what is there already, for InOrder and its like.
func Each[T any](values []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range values {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// result is a judgement, or the error that ends the run.
type result[T any] struct {
	value T
	err   error
}

// ahead is how many candidates a worker may be ahead of a slow one.
const ahead = 512

// start judges in the background. It returns one channel for each candidate, in
// order, on which the result will be.
func start[C, T any](ctx context.Context, candidates iter.Seq2[C, error], workers int,
	judge func(context.Context, C) (T, error)) <-chan chan result[T] {
	pending := make(chan chan result[T], ahead*workers)
	free := make(chan struct{}, workers)
	go func() {
		defer close(pending)
		for r, err := range candidates {
			if ctx.Err() != nil {
				return
			}
			slot := make(chan result[T], 1)
			pending <- slot
			if err != nil {
				slot <- result[T]{err: err}
				return
			}
			free <- struct{}{}
			go func() {
				defer func() { <-free }()
				value, err := judge(ctx, r)
				slot <- result[T]{value, err}
			}()
		}
	}()
	return pending
}
