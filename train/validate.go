package train

import (
	"context"
	"slices"

	"caper/data"
	"caper/engine"
	"caper/eval"
	"caper/model"
)

// validationTuples draws which held-out tuples are localised at each validation:
// those that hold their root cause, at most train.validate_questions of them.
func validationTuples(heldOut []data.Tuple, c Train) []data.Tuple {
	roots := slices.DeleteFunc(slices.Clone(heldOut), func(t data.Tuple) bool { return !t.RootClause })
	engine.Random(c.Seed, "validation", 0, 0).Shuffle(len(roots), func(i, j int) { roots[i], roots[j] = roots[j], roots[i] })
	return roots[:min(len(roots), c.ValidateQuestions)]
}

// validate localises the held-out faults, records the result, and keeps the model
// when it is the best so far. Without held-out faults the last model is the result.
func (r *prm) validate(ctx context.Context, epoch float64, last bool) error {
	if len(r.faults) == 0 {
		if last {
			return r.export()
		}
		return nil
	}
	scorer, err := model.NewScorer(r.model, r.config.Train.MicroBatchTokens)
	if err != nil {
		return err
	}
	// An interruption waits: the step is saved only with its validation.
	scores, err := eval.ScoreFaults(context.WithoutCancel(ctx), scorer, r.faults, nil)
	if err != nil {
		return err
	}
	found := eval.Localize(r.faults, scores, nil, eval.LocalizeOptions{Resamples: 1})
	m := Metrics{Step: r.state.Step, Epoch: epoch, Top1: &found.Top1, MRR: &found.MRR, Validated: found.Count}
	r.state.Worse++
	if found.Top1 > r.state.Best {
		r.state.Best, r.state.BestStep, r.state.Worse = found.Top1, r.state.Step, 0
		m.Best = true
		if err := r.export(); err != nil {
			return err
		}
	}
	r.options.Log.Info("validation", "step", r.state.Step, "top1", round(found.Top1), "mrr", round(found.MRR), "count", found.Count, "best", m.Best)
	return r.metrics.write(m)
}
