package solve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
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
	file, err := data.OpenResumable(out.Path, out.Resume, settings, "questions", checkpointInterval)
	if err != nil {
		return err
	}
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
		err = file.Advance()
		if out.Progress != nil {
			out.Progress(file.Done)
		}
		return err
	}
	rest := pools[min(file.Done, len(pools)):]
	if err := eval.InOrder(ctx, eval.Each(rest), out.Workers, work, emit); err != nil {
		return file.Stop(ctx, err)
	}
	return file.Commit()
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
