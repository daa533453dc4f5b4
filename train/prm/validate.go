package prm

import (
	"context"
	"slices"

	"caper/data"
	"caper/engine"
	"caper/eval"
	"caper/model"
	"caper/train/run"
)

// validationTuples draws which held-out tuples are localised at each validation:
// those that hold their root cause, at most train.validate_questions of them.
func validationTuples(heldOut []data.Tuple, c Training) []data.Tuple {
	roots := slices.DeleteFunc(slices.Clone(heldOut), func(t data.Tuple) bool { return !t.RootClause })
	engine.Random(c.Seed, "validation", 0, 0).Shuffle(len(roots), func(i, j int) { roots[i], roots[j] = roots[j], roots[i] })
	return roots[:min(len(roots), c.ValidateQuestions)]
}

// Validate localises the held-out faults, records the result, and keeps the model
// when it is the best so far. Without held-out faults the last model is the result.
func (r *prm) Validate(ctx context.Context, last bool) error {
	if len(r.faults) == 0 {
		if last {
			return r.run.Export()
		}
		return nil
	}
	scorer, err := model.NewScorer(r.run.Model, r.config.Train.MicroBatchTokens)
	if err != nil {
		return err
	}
	// An interruption waits: the step is saved only with its validation.
	scores, err := eval.ScoreFaults(context.WithoutCancel(ctx), scorer, r.faults, nil)
	if err != nil {
		return err
	}
	found := eval.Localize(r.faults, scores, nil, eval.LocalizeOptions{Resamples: 1})
	m := Metrics{Step: r.state.Step, Epoch: r.line.Epoch, Top1: &found.Top1, MRR: &found.MRR, Validated: found.Count}
	if m.Best, err = r.run.Improved(found.Top1); err != nil {
		return err
	}
	r.run.Log.Info("validation", "step", r.state.Step, "top1", run.Figure{Value: found.Top1}, "mrr", run.Figure{Value: found.MRR}, "count", found.Count, "best", m.Best)
	return r.run.Write(&m)
}
