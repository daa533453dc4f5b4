package grpo

import (
	"context"
	"fmt"

	"caper/data"
	"caper/eval"
	"caper/kernels/sampling"
	"caper/train/rollout"
)

// Measured is how well a policy answers questions, one outcome for each in their order: its
// greedy answer, and the vote among its samples at temperature 1. Questions are left out
// whose gold does not run, and those whose prompts are too long.
type Measured struct {
	EX, MV  []eval.Outcome
	TooLong int
}

// Measure answers questions with the policy at model.path, of which nothing is trained:
// greedily, and by samples drawn with the configuration's seed, judged by its rule. The
// sampler is the native one, whatever the configuration says of servers.
func Measure(ctx context.Context, c Config, questions []data.Question, samples int, o Options) (m Measured, err error) {
	c.Rollout.Server, c.Rollout.Ahead = "", false
	t, err := openPolicy(c, o)
	if err != nil {
		return m, err
	}
	defer t.bench.Close()
	if m.TooLong, err = t.collector.ask(questions, t.prompter(), c.longestPrompt()); err != nil {
		return m, err
	}
	if len(t.collector.prompts) == 0 {
		return m, c.mistake("rollout.max_prompt", "none of the %d questions to measure the policy by has a prompt of %d tokens or less", len(questions), c.longestPrompt())
	}
	if m.EX, _, err = t.outcomes(ctx, sampling.Rule{}, 1); err != nil {
		return m, err
	}
	_, m.MV, err = t.outcomes(ctx, sampling.Rule{Temperature: 1}, samples)
	return m, err
}

// outcomes answers the collector's questions by one rule and returns how the first answers
// and the votes turned out.
func (t *trainer) outcomes(ctx context.Context, rule sampling.Rule, samples int) (first, vote []eval.Outcome, err error) {
	source, err := t.sampler(rule, samples)
	if err != nil {
		return nil, nil, err
	}
	c := &t.collector
	pools := make([]eval.Pool, len(c.questions))
	for g, err := range source.Groups(ctx, 0, c.prompts) {
		if err != nil {
			return nil, nil, err
		}
		pools[g.Question].Candidates = c.candidates(g, samples)
	}
	o := eval.VerificationOptions{ExecutionOptions: c.executor.Options(), Each: func(f, v eval.Outcome) {
		first, vote = append(first, f), append(vote, v)
	}}
	if _, err = eval.Verify(ctx, t.bench, pools, nil, o); err != nil {
		return nil, nil, fmt.Errorf("execution of the answers: %w", err)
	}
	return first, vote, nil
}

// candidates are a group's answers. A sample that was lost counts as one without a query.
func (c *collector) candidates(g rollout.Group, samples int) []data.Rollout {
	q := c.questions[g.Question]
	all := make([]data.Rollout, samples)
	for i := range all {
		all[i] = data.Rollout{Dataset: q.Dataset, QuestionID: q.ID, DBID: q.DBID, Question: q.Question, Gold: q.Gold}
		if i < len(g.Samples) {
			all[i].SQL = c.executor.Query(g.Samples[i].Text)
		}
	}
	return all
}
