package grpo

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"caper/data"
	"caper/model/tokenizer"
	"caper/train/policy"
	"caper/train/reward"
	"caper/train/rollout"
)

// group is the answers to a question, as far as they came, and what is known of them.
type group struct {
	question int // index into the run's questions
	samples  []rollout.Sample
	answers  []*reward.Answer
	rewarded []policy.Sample // of answers whose reward is not missing
	// advantages of each answer's tokens; nil where the group has no signal, and of
	// answers whose reward is missing.
	advantages [][]float32
	lost       map[string]int // reasons of samples that never came

	executed, judged chan error // what became of the execution; and, where scores are computed aside, of them
}

// collector samples and judges.
type collector struct {
	source    rollout.Source
	words     *tokenizer.Tokenizer
	questions []data.Question
	prompts   []rollout.Question // of each question
	executor  *reward.Executor
	scorer    *reward.Scorer                      // nil without a reward model
	scored    func(data.Question) (string, error) // the prompt as the reward model reads it
	crediting crediting
	// aside says that the scorer has a device of its own: groups are scored while others
	// are sampled, which leaves cores idle.
	aside   bool
	scoring *sync.Mutex
}

// phases are the seconds that parts of a step took: while sampling, queries are executed,
// so that Execute is only the time that the step waited for the last ones.
type phases struct{ Sample, Execute, Score, Train float64 }

// collect draws answers to some questions with the weights of a step, and judges them. The
// groups are in the order of the questions, whatever the order in which they came.
func (c *collector) collect(ctx context.Context, step int, questions []int, took *phases) ([]*group, error) {
	started := time.Now()
	groups, err := c.draw(ctx, step, questions)
	took.Sample += time.Since(started).Seconds()
	if err != nil {
		return nil, err
	}
	return groups, c.finish(groups, took)
}

// finish waits for the execution of groups and for their scores, and gives them their
// advantages.
func (c *collector) finish(groups []*group, took *phases) (err error) {
	started := time.Now()
	for _, g := range groups {
		err = cmp.Or(err, <-g.executed)
	}
	executed := time.Now()
	took.Execute += executed.Sub(started).Seconds()
	for _, g := range groups {
		err = cmp.Or(err, <-g.judged)
	}
	if err == nil && !c.aside {
		err = c.score(groups...)
	}
	took.Score += time.Since(executed).Seconds()
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.advantages, g.rewarded, err = c.crediting.credit(g.answers); err != nil {
			return fmt.Errorf("question %s: %w", c.questions[g.question].ID, err)
		}
	}
	return nil
}

// draw samples; each group is executed from when it is complete.
func (c *collector) draw(ctx context.Context, step int, questions []int) ([]*group, error) {
	var asked []rollout.Question
	place := map[int]int{}
	for i, q := range questions {
		asked, place[q] = append(asked, c.prompts[q]), i
	}
	groups := make([]*group, len(questions))
	var err error
	for drawn, failed := range c.source.Groups(ctx, step, asked) {
		if failed != nil {
			err = failed
			break
		}
		i, known := place[drawn.Question]
		if !known || groups[i] != nil {
			err = fmt.Errorf("rollouts: a group of question %d, which was not asked, or came before", drawn.Question)
			break
		}
		groups[i] = c.begin(ctx, drawn)
	}
	if err != nil {
		for _, g := range groups { // leave nothing running behind
			if g != nil {
				<-g.judged
			}
		}
		return nil, err
	}
	for i, g := range groups {
		if g == nil { // none of its samples came
			groups[i] = &group{question: questions[i], lost: map[string]int{"group": 1}, executed: closed, judged: closed}
		}
	}
	return groups, nil
}

var closed = func() chan error { c := make(chan error); close(c); return c }()

// begin lets a group's answers be executed, and scored where that is done aside.
func (c *collector) begin(ctx context.Context, drawn rollout.Group) *group {
	g := &group{question: drawn.Question, samples: drawn.Samples, lost: drawn.Lost, executed: make(chan error, 1), judged: make(chan error, 1)}
	for _, s := range drawn.Samples {
		g.answers = append(g.answers, answerOf(c.words, s.Text, s.Tokens))
	}
	go func() {
		defer close(g.judged)
		err := c.executor.Execute(ctx, c.questions[g.question], g.answers)
		g.executed <- err
		if err == nil && c.aside {
			g.judged <- c.score(g)
		}
	}()
	return g
}

// score scores executed groups, where there is a reward model.
func (c *collector) score(groups ...*group) (err error) {
	if c.scorer == nil {
		return nil
	}
	asked := make([]reward.Group, len(groups))
	for i, g := range groups {
		q := c.questions[g.question]
		if asked[i].Prompt, err = c.scored(q); err != nil {
			return fmt.Errorf("question %s: %w", q.ID, err)
		}
		asked[i].Answers = g.answers
	}
	c.scoring.Lock()
	defer c.scoring.Unlock()
	c.scorer.Score(asked)
	return nil
}

// lessons are the samples of groups with a signal.
func (c *collector) lessons(groups []*group) (samples []*sample) {
	for _, g := range groups {
		for i, advantages := range g.advantages {
			if s := g.samples[i]; len(advantages) > 0 {
				samples = append(samples, &sample{prompt: c.prompts[g.question].Tokens, tokens: s.Tokens, drawn: s.LogProbs, advantages: advantages})
			}
		}
	}
	return samples
}
