package dapo

import (
	"context"
	"iter"

	"caper/data"
	"caper/train/curriculum"
	"caper/train/grpo"
)

// lazyPolicy opens a policy when it is first asked: where all is known from a run that was
// stopped, it is not needed.
type lazyPolicy struct {
	open  func() (*grpo.Rater, error)
	rater *grpo.Rater
}

// Rates implements curriculum.Policy.
func (p *lazyPolicy) Rates(ctx context.Context, questions []data.Question, first int) iter.Seq2[curriculum.Rate, error] {
	return func(yield func(curriculum.Rate, error) bool) {
		if p.rater == nil {
			var err error
			if p.rater, err = p.open(); err != nil {
				yield(curriculum.Rate{}, err)
				return
			}
		}
		p.rater.Rates(ctx, questions, first)(yield)
	}
}

func (p *lazyPolicy) close() {
	if p.rater != nil {
		p.rater.Close()
	}
}
