// Package grpo trains policies: answers are sampled in groups, executed and scored, and the
// policy is moved to what its better answers did, clause by clause (caper.md 1.4.8). GRPO,
// its clause rewards, and what DAPO adds are settings of one trainer.
//
//	grpo.go     a run: opening, result
//	config.go   its configuration
//	source.go   questions, and where their answers come from
//	collect.go  sampling, execution and scoring of a step's questions, side by side
//	sample.go   rewards to the advantages of tokens
//	step.go     a step, from its questions to its update
//	ahead.go    answers drawn while the step before is learned from
//	learner.go  loss and gradient of a step's samples, in packed trees
//	metrics.go  what a step tells
//	validate.go execution accuracy of greedy answers
//	answers.go  the file of sampled answers, for people
//	rates.go    how many answers to each question are right, before a run
//	measure.go  how well a policy answers: greedily, and by the vote of samples
package grpo

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"caper/data"
	"caper/engine"
	"caper/eval"
	"caper/kernels/policyloss"
	"caper/kernels/sampling"
	"caper/model"
	"caper/sqlexec"
	"caper/train/policy"
	"caper/train/reward"
	"caper/train/rollout"
	"caper/train/run"
)

// Options are the choices that do not change a run's result.
type Options struct {
	run.Options
	// Extract finds the query in an answer that is none as it stands (rollout.chat).
	Extract func(string) string
}

// Outcome is what a finished run reports.
type Outcome struct {
	ModelDir string `json:"model"` // the best by validation, the last without one
	LastDir  string `json:"last_model"`
	Steps    int    `json:"steps"`
	// Questions to learn from; those whose prompts are too long were left out.
	Questions int `json:"questions"`
	TooLong   int `json:"too_long"`
	Skipped   int `json:"skipped_steps"`
	// Of the best validation; left out when there was none.
	BestEX   float64       `json:"best_ex,omitempty"`
	BestStep int           `json:"best_step,omitempty"`
	Stopped  string        `json:"stopped,omitempty"`
	Elapsed  time.Duration `json:"elapsed_ns"`
}

// state is what a run goes on from, beside weights and moments.
type state struct {
	run.State
	Epoch int `json:"epoch"` // epoch under way
	Next  int `json:"next"`  // questions of it done
	// Updates of the weights: passes over the answers of a step count each.
	Updates int `json:"updates"`
	// Unrewarded counts the steps in a row in which no answer had a reward.
	Unrewarded int `json:"unrewarded"`
	// Entropy of the last step that learned something, and the weight of its bonus.
	Entropy       float64      `json:"entropy"`
	EntropyWeight float64      `json:"entropy_weight"`
	Watch         reward.Watch `json:"watch"`
}

// trainer is one run under way.
type trainer struct {
	*run.Run
	config    Config
	state     state
	bench     *data.Benchmark
	collector collector
	source    rollout.Source
	validator *collector // nil without validation
	learner   *learner
	ahead     *ahead    // the next step's answers, nil where none are under way
	weights   []float64 // of the questions, nil where all count alike
	order     []int     // questions of the epoch, shuffled
	tooLong   int
	answers   *answerFile
}

// Train trains a policy and returns where it lies.
func Train(ctx context.Context, c Config, o Options) (Outcome, error) {
	started := time.Now()
	t, err := open(ctx, c, o)
	if t != nil {
		defer t.close()
	}
	if err != nil {
		return Outcome{}, run.BeforeFirstStep(ctx, err)
	}
	stopped, err := t.Loop(ctx, t)
	if err != nil {
		return Outcome{}, err
	}
	return t.outcome(stopped, time.Since(started))
}

// outcome exports what is not exported yet.
func (t *trainer) outcome(stopped string, elapsed time.Duration) (Outcome, error) {
	s := t.state
	out := Outcome{ModelDir: t.ModelDir(), LastDir: filepath.Join(t.config.Train.Out, "last"), Steps: s.Step, Questions: len(t.collector.prompts),
		TooLong: t.tooLong, Skipped: s.Skipped, BestEX: max(0, s.Best), BestStep: s.BestStep, Stopped: stopped, Elapsed: elapsed}
	if t.validator == nil {
		if err := t.Export(); err != nil {
			return out, err
		}
	}
	if err := t.Model.Save(out.LastDir); err != nil {
		return out, fmt.Errorf("%s: %w", out.LastDir, err)
	}
	return out, nil
}

// open prepares a run: questions, policy, sampler, judges, and the run folder.
func open(ctx context.Context, c Config, o Options) (t *trainer, err error) {
	if err := c.checkRun(); err != nil {
		return nil, err
	}
	t = &trainer{config: c}
	if t.Run, err = run.Open(t.config.sections(), &t.state, o.Options); err != nil {
		return nil, err
	}
	if t.bench, err = data.OpenBenchmark(c.Train.Benchmark, c.Train.Format); err != nil {
		return t, c.mistake("train.bench", "%w", err)
	}
	if err := t.Start(nil, model.Config{}, nil); err != nil {
		return t, err
	}
	if t.Model.Head == nil {
		return t, c.mistake("model.path", "a reward model cannot write queries: name a language model")
	}
	t.Moments.Step = t.state.Updates
	if err := t.makeLearner(); err != nil {
		return t, err
	}
	if err := t.makeCollector(ctx, o.Extract); err != nil {
		return t, err
	}
	if err := t.makeValidator(); err != nil {
		return t, err
	}
	n := len(t.collector.questions)
	t.Total = c.Train.MaxSteps
	if steps := c.Train.Epochs * ((n + c.Train.BatchQuestions - 1) / c.Train.BatchQuestions); t.Total == 0 || steps < t.Total && c.Rollout.DynamicBatches == 1 {
		t.Total = steps
	}
	t.shuffle()
	if err := t.Begin(ctx, t.walk, "questions", n, "too_long", t.tooLong, "samples", c.Rollout.Samples, "reward", c.Reward.Kind); err != nil {
		return t, err
	}
	t.answers, err = openAnswers(c.Train.Out, t.state.Step)
	return t, err
}

func (t *trainer) close() {
	if t.ahead != nil {
		t.ahead.cancel()
		<-t.ahead.done
	}
	if t.bench != nil {
		t.bench.Close()
	}
	if t.answers != nil {
		t.answers.close()
	}
	if t.Run != nil {
		t.Close()
	}
}

// makeLearner loads the reference, if the loss has one.
func (t *trainer) makeLearner() error {
	c := t.config
	t.learner = &learner{model: t.Model, params: t.Params, tape: t.Tape, loss: c.loss(), tokens: c.Train.MicroBatchTokens, importance: c.Policy.Importance}
	if c.Policy.KL == 0 {
		return nil
	}
	if c.LoRA.Rank > 0 && c.Policy.Reference == "" {
		t.learner.reference = newReference(t.Model, true)
		return nil
	}
	path := cmp.Or(c.Policy.Reference, c.Model.Path)
	m, err := model.Load(path, t.Device, model.Frozen)
	if err != nil {
		return err
	}
	if m.Head == nil || m.Config.Text.Shared().VocabSize != t.Model.Config.Text.Shared().VocabSize {
		return c.mistake("policy.reference", "%s is no language model of the policy's vocabulary", path)
	}
	t.learner.reference = newReference(m, false)
	return nil
}

// makeCollector makes what samples and judges.
func (t *trainer) makeCollector(ctx context.Context, extract func(string) string) error {
	c := t.config
	questions, weights, err := t.questions()
	if err != nil {
		return err
	}
	t.collector = t.judge(extract)
	if t.tooLong, err = t.collector.ask(questions, t.prompter(), c.longestPrompt()); err != nil {
		return err
	}
	for _, q := range t.collector.questions {
		if weights != nil {
			t.weights = append(t.weights, weights[q.ID])
		}
	}
	if len(t.collector.prompts) == 0 {
		return c.mistake("train.split", "no question to learn from: %d have prompts of more than %d tokens (rollout.max_prompt, train.max_length)", t.tooLong, c.longestPrompt())
	}
	if c.Reward.Model != "" {
		if err := t.makeScorer(); err != nil {
			return err
		}
	}
	rule := sampling.Rule{Temperature: c.Rollout.Temperature, TopP: c.Rollout.TopP}
	if c.Rollout.Server == "" {
		t.collector.source, err = t.sampler(rule, c.Rollout.Samples)
	} else {
		t.collector.source, err = t.server(ctx, rule)
	}
	return err
}

// judge is a collector that executes answers. It has no questions yet.
func (t *trainer) judge(extract func(string) string) collector {
	c := t.config
	if !c.Rollout.Chat {
		extract = nil
	}
	by := eval.Rule(cmp.Or(c.Reward.Rule, string(t.bench.Rule())))
	x := reward.NewExecutor(t.bench, eval.ExecutionOptions{Rule: by, Workers: cmp.Or(c.Reward.Workers, runtime.GOMAXPROCS(0)),
		Cache: sqlexec.NewCache(c.Reward.CacheMB << 20), Schemas: eval.NewSchemas(t.bench)}, extract)
	return collector{words: t.Model.Tokenizer, executor: x, scored: t.bench.Prompt, scoring: new(sync.Mutex), crediting: c.crediting()}
}

// makeScorer loads the reward model: on the processor to a device of its own, which
// computes with half of the threads while others sample.
func (t *trainer) makeScorer() error {
	c := t.config
	device := t.Device
	if t.collector.aside = engine.GPUOf(device) == nil; t.collector.aside {
		precision, err := engine.ParsePrecision(c.Train.Precision)
		if err != nil {
			return err
		}
		device = engine.CPU(max(1, cmp.Or(c.Train.Threads, runtime.GOMAXPROCS(0))/2), engine.WithPrecision(precision))
	}
	m, err := model.Load(c.Reward.Model, device, model.Frozen)
	if err != nil {
		return err
	}
	scorer, err := model.NewScorer(m, c.Train.MicroBatchTokens)
	if err != nil {
		return c.mistake("reward.model", "%w", err)
	}
	t.collector.scorer, err = reward.NewScorer(scorer, reward.Kind(c.Reward.Kind), c.Reward.Temperature)
	return err
}

// makeValidator makes what answers the validation's questions greedily.
func (t *trainer) makeValidator() error {
	c := t.config
	if c.Train.ValidationSplit == "" {
		return nil
	}
	questions, err := t.bench.Questions(c.Train.ValidationSplit)
	if err != nil {
		return c.mistake("train.validation_split", "%w", err)
	}
	if n := c.Train.ValidateQuestions; n > 0 {
		questions = questions[:min(n, len(questions))]
	}
	v := t.collector
	v.scorer, v.crediting = nil, crediting{kind: reward.Sparse, options: reward.Sparse.Policy(policy.DefaultOptions())}
	if _, err := v.ask(questions, t.prompter(), c.longestPrompt()); err != nil {
		return err
	}
	if v.source, err = t.sampler(sampling.Rule{}, 1); err != nil {
		return err
	}
	t.validator = &v
	return nil
}

// walk implements run.Walk: the longest prompts with answers of the greatest length, which
// share nothing with each other.
func (t *trainer) walk(ctx context.Context, twin *run.Run, tokens int) error {
	prompts := slices.Clone(t.collector.prompts)
	slices.SortFunc(prompts, func(a, b rollout.Question) int { return len(b.Tokens) - len(a.Tokens) })
	l := &learner{model: twin.Model, tape: twin.Tape, loss: t.learner.loss, tokens: tokens}
	vocabulary := int32(t.Model.Config.Text.Shared().VocabSize)
	var samples []*sample
	for _, q := range prompts[:min(len(prompts), t.config.Train.BatchQuestions)] {
		for i := range t.config.Rollout.Samples {
			s := &sample{prompt: q.Tokens, tokens: make([]int32, t.config.Rollout.MaxTokens)}
			s.tokens[0] = int32(i) % vocabulary
			samples = append(samples, s)
		}
		if len(samples)*t.config.Rollout.MaxTokens > 2*tokens {
			break
		}
	}
	for l.lay(samples); l.packer.Next(); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.pairs(samples)
		l.forward(func(logProbs *engine.Tensor) {
			l.tape.SeedRows(policyloss.Forward(l.tape, logProbs, make([]policyloss.Token, logProbs.Rows), l.loss), one)
		})
	}
	return nil
}
