package run

import (
	"context"
	"fmt"
)

// Trainer does the steps that Loop asks for.
type Trainer interface {
	// Step does one optimiser step, ended by Update or Skip, writes its line of metrics,
	// and returns what to show of it, valid until the next call: nothing of a step that
	// was skipped.
	Step(ctx context.Context) ([]Figure, error)
	// Validate judges the model after a step; last says that it was the run's last.
	Validate(ctx context.Context, last bool) error
}

// Loop takes the steps from the state's to the last, with the validations and checkpoints
// that are due. It returns why it stopped early, if it did.
func (r *Run) Loop(ctx context.Context, t Trainer) (stopped string, err error) {
	return r.profiled(func() (string, error) { return r.loop(ctx, t) })
}

func (r *Run) loop(ctx context.Context, t Trainer) (string, error) {
	c, s := r.sections.Train, r.holder.state()
	for s.Step < r.Total {
		if c.Patience > 0 && s.Worse >= c.Patience {
			s.Stopped = fmt.Sprintf("no better validation in %d", s.Worse)
		}
		if s.Stopped != "" {
			return s.Stopped, r.Checkpoint()
		}
		if ctx.Err() != nil {
			return "", r.interrupted()
		}
		shown, err := t.Step(ctx)
		if err != nil {
			return "", err
		}
		if r.options.Progress != nil {
			r.options.Progress.Step(s.Step, r.Total, shown)
		}
		last := s.Step == r.Total
		if last || due(s.Step, c.ValidateEvery) {
			if err := t.Validate(ctx, last); err != nil {
				return "", err
			}
		}
		if last || s.Stopped != "" || due(s.Step, c.CheckpointEvery) {
			if err := r.Checkpoint(); err != nil {
				return "", err
			}
		}
	}
	return s.Stopped, nil
}

func due(step, every int) bool { return every > 0 && step%every == 0 }

// interrupted saves the run where it is.
func (r *Run) interrupted() error {
	if err := r.Checkpoint(); err != nil {
		return err
	}
	return fmt.Errorf("%w at step %d of %d, saved: run the same command with --resume to go on", ErrInterrupted, r.holder.state().Step, r.Total)
}
