package eval

import (
	"context"
	"fmt"
	"iter"
	"time"

	"caper/data"
)

// VerdictFile is a verdict file that a stopped run can be resumed into.
type VerdictFile struct {
	Path string
	// Resume goes on behind the candidates that an unfinished run to the same path has
	// judged, if there is one. Nothing is judged twice.
	Resume bool
	// Settings are what the verdicts depend on beside the candidates. An unfinished run
	// with others is not resumed.
	Settings map[string]string
	// Progress is told how many candidates are judged, behind each; it may be nil.
	Progress func(done int)
}

// judgement is what a measure finds about a candidate: a line of the file.
type judgement interface{ Line() data.Rollout }

// checkpointInterval is the work that a killed run loses at most.
var checkpointInterval = 2 * time.Second

// WriteVerdicts judges candidates into a file that is there whole or not at all; until
// then its lines are kept beside it (data.Partial). measure judges; read is the inverse
// of a judgement's Line; add is told every judgement in order, also those of the run
// that is resumed. An error says so when there is something to resume.
func WriteVerdicts[T judgement](ctx context.Context, out VerdictFile, candidates iter.Seq2[data.Rollout, error],
	measure func(context.Context, iter.Seq2[data.Rollout, error], func(T) error) error, read func(data.Rollout) (T, error), add func(T)) error {
	file, err := data.OpenResumable(out.Path, out.Resume, out.Settings, "verdicts", checkpointInterval)
	if err != nil {
		return err
	}
	w := &verdictWriter[T]{Resumable: file, progress: out.Progress, read: read, add: add}
	if w.Done > 0 {
		next, stop := iter.Pull2(candidates)
		defer stop()
		if err := w.restore(next); err != nil {
			return w.Refuse(err)
		}
		candidates = rest(next)
	}
	if err := measure(ctx, candidates, w.write); err != nil {
		return w.Stop(ctx, err)
	}
	return w.Commit()
}

// verdictWriter keeps judgements in a file.
type verdictWriter[T judgement] struct {
	*data.Resumable
	progress func(done int)
	read     func(data.Rollout) (T, error)
	add      func(T)
}

// restore passes over the candidates that were judged, which must be those that come
// first now.
func (w *verdictWriter[T]) restore(next func() (data.Rollout, error, bool)) error {
	n := 0
	for line, err := range w.Rollouts() {
		if err != nil {
			return err
		}
		candidate, err, ok := next()
		if err != nil {
			return err
		}
		if !ok || !isSameCandidate(line, candidate) {
			return fmt.Errorf("candidate %d is not the one that it was begun with: give the same files", n+1)
		}
		judged, err := w.read(line)
		if err != nil {
			return err
		}
		w.add(judged)
		n++
	}
	if n != w.Done {
		return fmt.Errorf("%d candidates were judged, and %d lines are there", w.Done, n)
	}
	return nil
}

// isSameCandidate compares all but the extra fields.
func isSameCandidate(a, b data.Rollout) bool {
	return keyOf(a) == keyOf(b) && a.Dataset == b.Dataset && a.Gold == b.Gold && a.SQL == b.SQL && a.Source == b.Source && a.Sample == b.Sample
}

// rest is what next has left.
func rest(next func() (data.Rollout, error, bool)) iter.Seq2[data.Rollout, error] {
	return func(yield func(data.Rollout, error) bool) {
		for {
			r, err, ok := next()
			if !ok || !yield(r, err) {
				return
			}
		}
	}
}

func (w *verdictWriter[T]) write(judged T) error {
	if err := w.WriteLine(judged.Line()); err != nil {
		return err
	}
	w.add(judged)
	err := w.Advance()
	if w.progress != nil {
		w.progress(w.Done)
	}
	return err
}
