package annotate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"caper/data"
	"caper/sqlexec"
)

// Output is a tuple file that a stopped run can be resumed into.
type Output struct {
	// Path of the file: Parquet where it ends in .parquet, else JSON Lines.
	Path string
	// Resume goes on behind the rollouts that an unfinished run to the same path
	// has done, if there is one. The file is then the same, byte for byte, as
	// that of a run that was never stopped.
	Resume bool
	// Settings are what the tuples depend on besides the options, the benchmark's
	// limits and the rollouts. An unfinished run with others is not resumed.
	Settings map[string]string
	// Results keeps the results of queries from run to run; nil keeps none.
	Results *sqlexec.DiskCache
	// Progress is told the counts so far behind every rollout; it may be nil.
	Progress func(*Summary)
}

// checkpointInterval is the work that a killed run loses at most, beside the
// rollouts that were under way.
var checkpointInterval = 2 * time.Second

// Write annotates rollouts as Run does, into a file that is there whole or not at
// all. Until then its tuples are kept beside it (data.Partial). An error says so
// when there is something to resume.
func Write(ctx context.Context, bench *data.Benchmark, rollouts iter.Seq2[data.Rollout, error], o Options, out Output) (Summary, error) {
	w := &writer{out: out, saved: time.Now()}
	r, err := newRun(bench, o, w)
	if err != nil {
		return Summary{}, err
	}
	r.cache.Disk = out.Results
	w.state = state{Settings: settings(bench, o, out.Settings), Summary: &r.summary}
	if err := w.open(r); err != nil {
		return Summary{}, err
	}
	if err = r.run(ctx, w.rest(r, rollouts)); err != nil {
		return r.summary, w.stopped(ctx, err)
	}
	return r.summary, w.file.Commit()
}

// writer is the sink that keeps tuples in a file, and now and then notes how far
// it has come.
type writer struct {
	out   Output
	file  *data.Partial
	state state
	saved time.Time // of the last checkpoint
}

// state is what a checkpoint notes beside the tuples.
type state struct {
	// Settings are what the tuples depend on beside the rollouts.
	Settings map[string]string `json:"settings"`
	// Rollouts were done, whose contents in order hash to Content.
	Rollouts int      `json:"rollouts"`
	Content  content  `json:"content"`
	Summary  *Summary `json:"summary"`
}

// settings lists what the tuples depend on beside the rollouts, by name.
func settings(bench *data.Benchmark, o Options, more map[string]string) map[string]string {
	s := map[string]string{
		"benchmark": bench.Name + " in the layout of " + bench.Layout,
		"limits":    fmt.Sprintf("%+v", bench.Limits),
	}
	options := reflect.ValueOf(o)
	for i := range options.NumField() {
		switch name := options.Type().Field(i).Name; name {
		case "Workers", "CacheBytes", "Split": // change no tuple, or are among the other settings
		default:
			s[name] = fmt.Sprint(options.Field(i))
		}
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		s["version"] = build.Main.Version
	}
	maps.Copy(s, more)
	return s
}

// open starts the file, or goes back to the last checkpoint of an unfinished one.
func (w *writer) open(r *run) error {
	if !w.out.Resume {
		file, err := data.CreatePartial(w.out.Path)
		if errors.Is(err, data.ErrUnfinished) {
			err = fmt.Errorf("%w: go on with --resume, or remove %s.journal", err, w.out.Path)
		}
		w.file = file
		return err
	}
	var raw json.RawMessage
	file, found, err := data.ResumePartial(w.out.Path, &raw)
	if err != nil || !found {
		w.file = file
		return err
	}
	if err := w.restore(r, file, raw); err != nil {
		file.Close()
		return fmt.Errorf("resume %s: %w; or remove %s.journal to start anew", w.out.Path, err, w.out.Path)
	}
	return nil
}

func (w *writer) restore(r *run, file *data.Partial, raw json.RawMessage) error {
	then := state{Summary: &r.summary}
	if err := json.Unmarshal(raw, &then); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.state.Settings)) {
		if was, is := then.Settings[name], w.state.Settings[name]; was != is {
			return fmt.Errorf("it was begun with %s %s, not %s: give the same", name, was, is)
		}
	}
	for id, err := range file.IDs() {
		if err != nil {
			return err
		}
		r.tuples.add(contentOfID(id))
	}
	w.file, w.state = file, then
	return nil
}

// rest passes over the rollouts that were done, which must be those that come
// first now.
func (w *writer) rest(r *run, rollouts iter.Seq2[data.Rollout, error]) iter.Seq2[data.Rollout, error] {
	past, done := w.state, 0
	if past.Rollouts == 0 {
		return rollouts
	}
	return func(yield func(data.Rollout, error) bool) {
		var hash content
		for rollout, err := range rollouts {
			if err == nil && done < past.Rollouts {
				c := contentOf(rollout)
				r.rollouts.add(c)
				hash = hash.followedBy(c)
				if done++; done < past.Rollouts || hash == past.Content {
					continue
				}
				err = fmt.Errorf("resume %s: the first %d rollouts are not those that it was begun with: give the same files; or remove %s.journal to start anew",
					w.out.Path, done, w.out.Path)
			}
			if !yield(rollout, err) || err != nil {
				return
			}
		}
		if done < past.Rollouts {
			yield(data.Rollout{}, fmt.Errorf("resume %s: %d rollouts were done, and there are only %d now: give the same files; or remove %s.journal to start anew",
				w.out.Path, past.Rollouts, done, w.out.Path))
		}
	}
}

// followedBy is the hash of a sequence of contents with one more.
func (c content) followedBy(next content) content {
	var pair [16]byte
	binary.BigEndian.PutUint64(pair[:8], uint64(c))
	binary.BigEndian.PutUint64(pair[8:], uint64(next))
	sum := sha256.Sum256(pair[:])
	return content(binary.BigEndian.Uint64(sum[:]))
}

func (w *writer) tuple(t data.Tuple) error { return w.file.Write(t) }

func (w *writer) rolloutDone(c content, s *Summary) error {
	w.state.Rollouts++
	w.state.Content = w.state.Content.followedBy(c)
	if w.out.Progress != nil {
		w.out.Progress(s)
	}
	if time.Since(w.saved) < checkpointInterval {
		return nil
	}
	err := w.file.Checkpoint(w.state)
	w.saved = time.Now()
	return err
}

// stopped closes the unfinished file and says whether something is kept. A run
// that is told to stop notes how far it has come, unless it is so short that it
// never did.
func (w *writer) stopped(ctx context.Context, err error) error {
	interrupted := ctx.Err() != nil && errors.Is(err, ctx.Err())
	if interrupted && w.file.Kept() {
		if failed := w.file.Checkpoint(w.state); failed != nil {
			err, interrupted = failed, false
		}
	}
	switch kept := w.file.Close(); {
	case kept && interrupted:
		return fmt.Errorf("interrupted: %d rollouts are done and kept beside %s: go on with --resume", w.state.Rollouts, w.out.Path)
	case kept:
		return fmt.Errorf("%w; what is done is kept beside %s: go on with --resume", err, w.out.Path)
	}
	return err
}
