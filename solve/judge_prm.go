package solve

import (
	"context"
	"fmt"
	"math"
	"sync"

	"caper/data"
	"caper/eval"
	"caper/model"
)

// RewardJudge prefers queries by the scores of a clause reward model, which never sees a
// result:
//
//	P(a>b) = 1 / (1 + exp(S(b) - S(a)))     S: eval.QueryScore, the mean over clauses
//
// the probability by which a Bradley-Terry model, as the reward model was trained to be,
// prefers a. A model that is unsure so says little beside the vote. It is safe for
// concurrent use.
type RewardJudge struct {
	mu     sync.Mutex
	scorer *model.Scorer
	prompt func(data.Question) (string, error)
}

// NewRewardJudge returns one that reads prompts as they were in the model's training;
// data.Benchmark.Prompt is prompt.
func NewRewardJudge(scorer *model.Scorer, prompt func(data.Question) (string, error)) *RewardJudge {
	return &RewardJudge{scorer: scorer, prompt: prompt}
}

// Compare implements Judge.
func (j *RewardJudge) Compare(ctx context.Context, q data.Question, candidates []*Examined) ([]float64, Cost, error) {
	prompt, err := j.prompt(q)
	if err != nil {
		return nil, Cost{}, fmt.Errorf("question %s: %w", q.ID, err)
	}
	var queries []string
	for _, x := range candidates {
		queries = append(queries, x.SQL)
	}
	scores, err := j.Score(ctx, prompt, queries)
	if err != nil {
		return nil, Cost{}, err
	}
	rewards, err := roundRobin(len(candidates), func(a, b int) (float64, error) {
		return logistic(eval.QueryScore(scores[a], eval.Mean) - eval.QueryScore(scores[b], eval.Mean)), nil
	})
	return rewards, Cost{Calls: 1}, err
}

// Score scores the clauses of queries behind a prompt. Several who ask wait for one another.
// The error is ctx's.
func (j *RewardJudge) Score(ctx context.Context, prompt string, queries []string) ([]model.Scores, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return j.scorer.Score([]model.Request{eval.ScoreRequest(prompt, queries)})[0], nil
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
