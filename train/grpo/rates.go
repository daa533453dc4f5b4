package grpo

import (
	"context"
	"iter"

	"caper/data"
	"caper/engine"
	"caper/kernels/sampling"
	"caper/model"
	"caper/train/curriculum"
	"caper/train/reward"
	"caper/train/rollout"
	"caper/train/run"
)

// Rater finds how many of the policy's answers to a question are right. It is the policy of
// a curriculum.
type Rater struct{ t *trainer }

// OpenRater opens the policy that a run of the configuration would start from, with a
// number of answers to each question. A model server is given the weights.
func OpenRater(ctx context.Context, c Config, samples int, o Options) (*Rater, error) {
	c.Rollout.Samples = samples
	t, err := openPolicy(c, o)
	if err != nil {
		return nil, err
	}
	if t.collector.source, err = t.startSource(ctx); err != nil {
		t.bench.Close()
		return nil, err
	}
	return &Rater{t}, nil
}

// openPolicy opens the policy that a run of the configuration would start from, to be asked
// and not to be trained. It has no source of answers yet.
func openPolicy(c Config, o Options) (t *trainer, err error) {
	c.Reward.Kind, c.Reward.Model = string(reward.Sparse), ""
	if err := c.checkRun(); err != nil {
		return nil, err
	}
	t = &trainer{config: c, Run: &run.Run{Device: o.Device}}
	if t.Device == nil {
		precision, err := engine.ParsePrecision(c.Train.Precision)
		if err != nil {
			return nil, c.mistake("train.precision", "%w", err)
		}
		t.Device = engine.CPU(c.Train.Threads, engine.WithPrecision(precision))
	}
	if t.Model, err = model.Load(c.Model.Path, t.Device, model.Frozen); err != nil {
		return nil, err
	}
	if t.Model.Head == nil || t.Model.Tokenizer == nil {
		return nil, c.mistake("model.path", "that is no language model with a tokenizer.json: name one")
	}
	if t.bench, err = data.OpenBenchmark(c.Train.Benchmark, c.Train.Format); err != nil {
		return nil, c.mistake("train.bench", "%w", err)
	}
	t.collector = t.judge(o.Extract)
	return t, nil
}

// startSource is the source of answers that a run would start with.
func (t *trainer) startSource(ctx context.Context) (rollout.Source, error) {
	c := t.config.Rollout
	rule := sampling.Rule{Temperature: c.Temperature, TopP: c.TopP}
	if c.Server == "" {
		return t.sampler(rule, c.Samples)
	}
	source, err := t.server(ctx, rule)
	if err != nil {
		return nil, err
	}
	return source, source.Update(ctx, t.Model, 0)
}

// Close closes the databases.
func (r *Rater) Close() { r.t.bench.Close() }

// together is how many questions are under way at a time.
const together = 64

// Rates implements curriculum.Policy.
func (r *Rater) Rates(ctx context.Context, questions []data.Question, first int) iter.Seq2[curriculum.Rate, error] {
	c := &r.t.collector
	c.questions, c.prompts = questions, make([]rollout.Question, len(questions))
	prompt := r.t.prompter()
	return func(yield func(curriculum.Rate, error) bool) {
		for ; first < len(questions); first += together {
			rates, err := r.some(ctx, prompt, first, min(first+together, len(questions)))
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(curriculum.Rate{}, err)
				return
			}
			for _, rate := range rates {
				if !yield(rate, nil) {
					return
				}
			}
		}
	}
}

// some asks the questions from first to before end.
func (r *Rater) some(ctx context.Context, prompt func(data.Question) (string, []int32, error), first, end int) ([]curriculum.Rate, error) {
	c := &r.t.collector
	rates := make([]curriculum.Rate, end-first)
	var asked []int
	for i := first; i < end; i++ {
		text, tokens, err := prompt(c.questions[i])
		if err != nil {
			return nil, err
		}
		if len(tokens) > r.t.config.longestPrompt() {
			rates[i-first].Missing = "the prompt is too long"
			continue
		}
		c.prompts[i] = rollout.Question{Index: i, Prompt: text, Tokens: tokens}
		asked = append(asked, i)
	}
	if len(asked) == 0 {
		return rates, nil
	}
	groups, err := c.collect(ctx, 0, asked, new(phases))
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		rates[g.question-first] = g.rate()
	}
	return rates, nil
}

// rate counts a group's answers.
func (g *group) rate() (rate curriculum.Rate) {
	missing := "no answer came"
	for _, a := range g.answers {
		if a.Missing != "" {
			missing = a.Missing
			continue
		}
		rate.Answers++
		if a.Correct() {
			rate.Right++
		}
	}
	if rate.Answers == 0 {
		rate.Missing = missing
	}
	return rate
}
