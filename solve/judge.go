package solve

import (
	"cmp"
	"context"
	"slices"

	"caper/data"
)

// Judge compares answers to a question.
type Judge interface {
	// Compare returns, for each of some candidates, S_rm: the mean over the others of the
	// preference for it, from 0 to 1. What it cannot decide is a tie, and no error: that is
	// ctx's.
	Compare(ctx context.Context, q data.Question, candidates []*Examined) ([]float64, Cost, error)
}

// tied is the preference between two that are as good, and S_rm without a judge.
const tied = 0.5

// judge fills in S_rm for the classes with most votes, each of which its representative
// stands for. The judge sees them in an order that says nothing.
func (d *Decision) judge(ctx context.Context, o Options) error {
	shown := make([]int, len(d.Classes))
	for i := range shown {
		shown[i] = i
	}
	slices.SortFunc(shown, func(i, j int) int {
		a, b := &d.Classes[i], &d.Classes[j]
		return cmp.Or(b.Votes-a.Votes, b.Groups-a.Groups, shorter(&d.Candidates[a.Representative], &d.Candidates[b.Representative]))
	})
	shown = shown[:min(len(shown), o.MaxJudged)]
	candidates := make([]*Examined, len(shown))
	for k, i := range shown {
		candidates[k] = &d.Candidates[d.Classes[i].Representative]
	}
	scores, cost, err := o.Judge.Compare(ctx, d.Question, candidates)
	d.Cost.Add(cost)
	if err != nil {
		return err
	}
	for i := range d.Classes {
		d.Classes[i].Reward = 0 // of those that it does not see
	}
	for k, i := range shown {
		d.Classes[i].Reward = scores[k]
	}
	return nil
}

// roundRobin makes S_rm of pairwise preferences, asked in both orders:
//
//	P(a>b) = (J(a,b) + 1 - J(b,a)) / 2     J: 1 the first shown, 0.5 neither, 0 the second
//
// so that a judge who prefers whatever comes first says nothing.
func roundRobin(n int, prefer func(first, second int) (float64, error)) ([]float64, error) {
	scores := make([]float64, n)
	for a := range n {
		for b := a + 1; b < n; b++ {
			forth, err := prefer(a, b)
			if err != nil {
				return nil, err
			}
			back, err := prefer(b, a)
			if err != nil {
				return nil, err
			}
			p := (forth + 1 - back) / 2
			scores[a] += p
			scores[b] += 1 - p
		}
	}
	for i := range scores {
		scores[i] /= float64(n - 1)
	}
	return scores, nil
}
