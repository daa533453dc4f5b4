package solve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"caper/data"
	"caper/eval"
)

// Output is the file that a stage writes, which a stopped run can be resumed into.
type Output struct {
	Path string
	// Resume goes on behind the questions that an unfinished run to the same path has
	// answered, if there is one.
	Resume bool
	// Settings are what the lines depend on beside the pools. An unfinished run with
	// others is not resumed.
	Settings map[string]string
	// Workers is how many questions are in hand at a time, at least 1.
	Workers int
	// Progress is told how many questions are done, behind each; it may be nil.
	Progress func(done int)
}

// checkpointInterval is the work that a killed run loses at most.
const checkpointInterval = 2 * time.Second

// outputState is what a checkpoint notes beside the lines.
type outputState struct {
	Settings  map[string]string `json:"settings"`
	Questions int               `json:"questions"`
}

// Outcome is what a stage makes of a pool.
type Outcome interface {
	// Lines are those of the file.
	Lines() ([]data.Rollout, error)
}

// Write works on pools and writes the lines that come of each, in the order of the
// pools, into a file that is there whole or not at all; until then its lines are kept
// beside it (data.Partial). tell sees each outcome of this run in that order. An error
// says so when there is something to resume.
func Write[T Outcome](ctx context.Context, out Output, pools []Pool, work func(context.Context, Pool) (T, error), tell func(T) error) error {
	settings := maps.Clone(out.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings["candidates"] = contentOf(pools)
	file, state, err := out.open(settings)
	if err != nil {
		return err
	}
	saved := time.Now()
	emit := func(o T) error {
		lines, err := o.Lines()
		if err == nil {
			err = tell(o)
		}
		if err != nil {
			return err
		}
		for _, line := range lines {
			if err := file.WriteLine(line); err != nil {
				return err
			}
		}
		state.Questions++
		if out.Progress != nil {
			out.Progress(state.Questions)
		}
		if time.Since(saved) < checkpointInterval {
			return nil
		}
		saved = time.Now()
		return file.Checkpoint(state)
	}
	rest := pools[min(state.Questions, len(pools)):]
	if err := eval.InOrder(ctx, all(rest), out.Workers, work, emit); err != nil {
		return out.stopped(ctx, file, state, err)
	}
	return file.Commit()
}

func all(pools []Pool) iter.Seq2[Pool, error] {
	return func(yield func(Pool, error) bool) {
		for _, p := range pools {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// contentOf stands for what the pools hold.
func contentOf(pools []Pool) string {
	h := sha256.New()
	for _, p := range pools {
		fmt.Fprintf(h, "%q %q %q %q\n", p.Question.ID, p.Question.DBID, p.Question.Question, p.Question.Evidence)
		for _, c := range p.Candidates {
			fmt.Fprintf(h, "%q %q %d %q\n", c.Source, c.Style, c.Sample, c.SQL)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// open starts the file, or goes back to the last checkpoint of an unfinished one.
func (out *Output) open(settings map[string]string) (*data.Partial, outputState, error) {
	state := outputState{Settings: settings}
	if !out.Resume {
		file, err := data.CreatePartial(out.Path)
		if errors.Is(err, data.ErrUnfinished) {
			err = fmt.Errorf("%w: go on with --resume, or remove %s.journal", err, out.Path)
		}
		return file, state, err
	}
	var raw json.RawMessage
	file, found, err := data.ResumePartial(out.Path, &raw)
	if err != nil || !found {
		return file, state, err
	}
	then := outputState{}
	err = json.Unmarshal(raw, &then)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if was, is := then.Settings[name], settings[name]; err == nil && was != is {
			err = fmt.Errorf("it was begun with %s %q, not %q: give the same", name, was, is)
		}
	}
	if err != nil {
		file.Close()
		return nil, state, fmt.Errorf("resume %s: %w; or remove %s.journal to start anew", out.Path, err, out.Path)
	}
	return file, then, nil
}

// stopped closes the unfinished file and says whether something is kept. A run that is
// told to stop notes how far it has come, unless it is so short that it never did.
func (out *Output) stopped(ctx context.Context, file *data.Partial, state outputState, err error) error {
	interrupted := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if interrupted && file.Kept() {
		if failed := file.Checkpoint(state); failed != nil {
			err, interrupted = failed, false
		}
	}
	switch kept := file.Close(); {
	case kept && interrupted:
		return fmt.Errorf("interrupted: %d questions are done and kept beside %s: go on with --resume", state.Questions, out.Path)
	case kept:
		return fmt.Errorf("%w; %d questions are kept beside %s: go on with --resume", err, state.Questions, out.Path)
	}
	return err
}
