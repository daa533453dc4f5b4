package grpo

import (
	"context"
	"fmt"

	"caper/train/run"
)

// Validate implements run.Trainer: it answers the held-out questions greedily and exports
// the model when it is the best so far.
func (t *trainer) Validate(ctx context.Context, _ bool) error {
	if t.validator == nil || ctx.Err() != nil {
		return nil
	}
	all := make([]int, len(t.validator.questions))
	for i := range all {
		all[i] = i
	}
	groups, err := t.validator.collect(ctx, 0, all, new(phases))
	if ctx.Err() != nil {
		return fmt.Errorf("%w during the validation of step %d: run the same command with --resume to go on from the checkpoint before", run.ErrInterrupted, t.state.Step)
	}
	if err != nil {
		return fmt.Errorf("validation of step %d: %w", t.state.Step, err)
	}
	m := Metrics{Step: t.state.Step}
	t.describe(&m, groups)
	ex := 0.0
	if m.EX != nil {
		ex = *m.EX
	}
	line := Metrics{Step: t.state.Step, ValidationEX: &ex, Validated: len(all), Missing: m.Missing, Lost: m.Lost}
	if line.Best, err = t.Improved(ex); err != nil {
		return err
	}
	t.Log.Info("validation", "step", t.state.Step, "ex", fmt.Sprintf("%.3f", ex), "questions", len(all), "best", line.Best)
	return t.Write(&line)
}
