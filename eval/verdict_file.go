package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
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
	w := &verdictWriter[T]{out: out, read: read, add: add, saved: time.Now()}
	if err := w.open(); err != nil {
		return err
	}
	if w.state.Candidates > 0 {
		next, stop := iter.Pull2(candidates)
		defer stop()
		if err := w.restore(next); err != nil {
			w.file.Close()
			return fmt.Errorf("resume %s: %w; or remove %s.journal to start anew", out.Path, err, out.Path)
		}
		candidates = rest(next)
	}
	if err := measure(ctx, candidates, w.write); err != nil {
		return w.stopped(ctx, err)
	}
	return w.file.Commit()
}

// verdictWriter keeps judgements in a file, and now and then notes how far it has come.
type verdictWriter[T judgement] struct {
	out   VerdictFile
	read  func(data.Rollout) (T, error)
	add   func(T)
	file  *data.Partial
	state verdictState
	saved time.Time // of the last checkpoint
}

// verdictState is what a checkpoint notes beside the lines.
type verdictState struct {
	Settings   map[string]string `json:"settings"`
	Candidates int               `json:"candidates"` // judged
}

// open starts the file, or goes back to the last checkpoint of an unfinished one.
func (w *verdictWriter[T]) open() (err error) {
	w.state.Settings = w.out.Settings
	if !w.out.Resume {
		w.file, err = data.CreatePartial(w.out.Path)
		if errors.Is(err, data.ErrUnfinished) {
			err = fmt.Errorf("%w: go on with --resume, or remove %s.journal", err, w.out.Path)
		}
		return err
	}
	var raw json.RawMessage
	file, found, err := data.ResumePartial(w.out.Path, &raw)
	if err != nil {
		return err
	}
	w.file = file
	if found {
		w.state = verdictState{} // not into the settings of now
		if err = json.Unmarshal(raw, &w.state); err == nil {
			err = w.checkSettings()
		}
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("resume %s: %w; or remove %s.journal to start anew", w.out.Path, err, w.out.Path)
	}
	return nil
}

func (w *verdictWriter[T]) checkSettings() error {
	for _, name := range slices.Sorted(maps.Keys(w.out.Settings)) {
		if was, is := w.state.Settings[name], w.out.Settings[name]; was != is {
			return fmt.Errorf("it was begun with %s %q, not %q: give the same", name, was, is)
		}
	}
	return nil
}

// restore passes over the candidates that were judged, which must be those that come
// first now.
func (w *verdictWriter[T]) restore(next func() (data.Rollout, error, bool)) error {
	n := 0
	for line, err := range w.file.Rollouts() {
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
	if n != w.state.Candidates {
		return fmt.Errorf("%d candidates were judged, and %d lines are there", w.state.Candidates, n)
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
	if err := w.file.WriteLine(judged.Line()); err != nil {
		return err
	}
	w.add(judged)
	w.state.Candidates++
	if w.out.Progress != nil {
		w.out.Progress(w.state.Candidates)
	}
	if time.Since(w.saved) < checkpointInterval {
		return nil
	}
	err := w.file.Checkpoint(w.state)
	w.saved = time.Now()
	return err
}

// stopped closes the unfinished file and says whether something is kept. A run that is
// told to stop notes how far it has come, unless it is so short that it never did.
func (w *verdictWriter[T]) stopped(ctx context.Context, err error) error {
	interrupted := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if interrupted && w.file.Kept() {
		if failed := w.file.Checkpoint(w.state); failed != nil {
			err, interrupted = failed, false
		}
	}
	switch kept := w.file.Close(); {
	case kept && interrupted:
		return fmt.Errorf("interrupted: %d verdicts are kept beside %s: go on with --resume", w.state.Candidates, w.out.Path)
	case kept:
		return fmt.Errorf("%w; %d verdicts are kept beside %s: go on with --resume", err, w.state.Candidates, w.out.Path)
	}
	return err
}
