package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Resumable is a Partial that is written item by item, in an order that does not change:
// a run that goes on with it passes over the first Done items.
type Resumable struct {
	*Partial
	// Done is the number of items whose lines are written.
	Done int

	settings map[string]string
	items    string // what they are called
	interval time.Duration
	saved    time.Time // of the last checkpoint
}

// resumableState is what a checkpoint notes beside the lines.
type resumableState struct {
	Settings map[string]string `json:"settings"`
	Done     int               `json:"done"`
}

// OpenResumable starts the file, or, with resume, goes back to the last checkpoint of an
// unfinished one. settings are what the lines depend on beside the items; an unfinished
// run with others is refused. items names them in messages, interval is the work that a
// killed run loses at most.
func OpenResumable(path string, resume bool, settings map[string]string, items string, interval time.Duration) (*Resumable, error) {
	r := &Resumable{settings: settings, items: items, interval: interval, saved: time.Now()}
	var err error
	if !resume {
		r.Partial, err = CreatePartial(path)
		if errors.Is(err, ErrUnfinished) {
			err = fmt.Errorf("%w: go on with --resume, or remove %s.journal", err, path)
		}
		return r, err
	}
	var raw json.RawMessage
	file, found, err := ResumePartial(path, &raw)
	if err != nil {
		return nil, err
	}
	r.Partial = file
	if !found {
		return r, nil
	}
	var then resumableState
	if err = json.Unmarshal(raw, &then); err == nil {
		err = sameSettings(then.Settings, settings)
	}
	if err != nil {
		return nil, r.Refuse(err)
	}
	r.Done = then.Done
	return r, nil
}

func sameSettings(then, now map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, is := then[name], now[name]; was != is {
			return fmt.Errorf("it was begun with %s %q, not %q: give the same", name, was, is)
		}
	}
	return nil
}

// Refuse closes an unfinished file that this run cannot go on with, and says why and what
// to do.
func (r *Resumable) Refuse(err error) error {
	r.Close()
	return fmt.Errorf("resume %s: %w; or remove %s to start anew", r.path, err, r.journal())
}

// Advance counts an item, whose lines are written, and now and then makes a checkpoint.
func (r *Resumable) Advance() error {
	r.Done++
	if time.Since(r.saved) < r.interval {
		return nil
	}
	err := r.checkpoint()
	r.saved = time.Now()
	return err
}

func (r *Resumable) checkpoint() error { return r.Checkpoint(resumableState{r.settings, r.Done}) }

// Stop closes the unfinished file and says whether something is kept. A run that is told
// to stop notes how far it has come, unless it is so short that it never did.
func (r *Resumable) Stop(ctx context.Context, err error) error {
	interrupted := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if interrupted && r.Kept() {
		if failed := r.checkpoint(); failed != nil {
			err, interrupted = failed, false
		}
	}
	switch kept := r.Close(); {
	case kept && interrupted:
		return fmt.Errorf("interrupted: %d %s are kept beside %s: go on with --resume", r.Done, r.items, r.path)
	case kept:
		return fmt.Errorf("%w; %d %s are kept beside %s: go on with --resume", err, r.Done, r.items, r.path)
	}
	return err
}
