package sft

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"caper/data"
	"caper/eval"
	"caper/model/generate"
	"caper/sqlexec"
	"caper/train/run"
)

// validator answers held-out questions greedily and executes the answers.
type validator struct {
	generator *generate.Generator
	requests  []generate.Request // of the seen databases' questions, then the others
	questions []data.Question
	seen      int // how many are of seen databases
	bench     *data.Benchmark
	judge     eval.ExecutionOptions
}

// resultCache is the size of the cache of gold's results.
const resultCache = 256 << 20

// makeValidator makes what judges the model by its held-out questions.
func (r *sft) makeValidator(end int32) error {
	all := slices.Concat(r.data.seen, r.data.unseen)
	if len(all) == 0 {
		if r.config.Train.StopAtEX > 0 {
			return r.config.mistake("train.stop_at_ex", "no question is held out to measure it on: raise train.holdout_databases, holdout_questions or validate_questions, or lower max_new_tokens")
		}
		return nil
	}
	c := r.config.Train
	v := &validator{seen: len(r.data.seen), bench: r.bench, judge: eval.ExecutionOptions{
		Rule: eval.Rule(r.bench.Rule()), Workers: runtime.GOMAXPROCS(0), Cache: sqlexec.NewCache(resultCache), Schemas: eval.NewSchemas(r.bench)}}
	var err error
	if v.generator, err = generate.New(r.run.Model, generate.Options{Tokens: c.ValidateTokens, Batch: min(c.ValidateBatch, len(all))}); err != nil {
		return r.config.mistake("train.validate_cache_tokens", "%w", err)
	}
	for _, a := range all {
		request := generate.Request{Prompt: a.prompt, Samples: 1, MaxTokens: c.MaxNewTokens, StopTokens: []int32{end}}
		if err := v.generator.Check(&request); err != nil {
			return r.config.mistake("train.validate_cache_tokens", "question %s: %w", a.question.ID, err)
		}
		v.requests, v.questions = append(v.requests, request), append(v.questions, a.question)
	}
	r.validator = v
	return nil
}

// accuracy is the share of held-out questions whose answer gives gold's result.
type accuracy struct{ right, all int }

func (a accuracy) share() float64 { return float64(a.right) / float64(max(a.all, 1)) }

// measured returns the share, nil where there are no questions.
func (a accuracy) measured() *float64 {
	if a.all == 0 {
		return nil
	}
	share := a.share()
	return &share
}

// run returns the accuracies on seen and on unseen databases.
func (v *validator) run(ctx context.Context) (seen, unseen accuracy, err error) {
	results, err := v.generator.Generate(ctx, v.requests)
	if err != nil {
		return seen, unseen, err
	}
	var candidates []data.Rollout
	for i, q := range v.questions {
		candidates = append(candidates, data.Rollout{Dataset: q.Dataset, QuestionID: q.ID, DBID: q.DBID, Question: q.Question, Gold: q.Gold, SQL: results[i].Samples[0].Text})
	}
	i := 0
	err = eval.Execute(ctx, v.bench, eval.Each(candidates), v.judge, func(j eval.Judged) error {
		of := &seen
		if i >= v.seen {
			of = &unseen
		}
		if of.all++; j.Verdict == eval.Correct {
			of.right++
		}
		i++
		return nil
	})
	return seen, unseen, err
}

// Validate implements run.Trainer: it keeps the model when its answers are the best so far,
// and ends the run when they are good enough. Without held-out questions the last model is
// the result.
func (r *sft) Validate(ctx context.Context, last bool) error {
	if r.validator == nil {
		if last {
			return r.run.Export()
		}
		return nil
	}
	started := time.Now()
	// An interruption waits: the step is saved only with its validation.
	seen, unseen, err := r.validator.run(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("validation of step %d: %w", r.state.Step, err)
	}
	all := accuracy{seen.right + unseen.right, seen.all + unseen.all}
	ex := all.share()
	m := Metrics{Step: r.state.Step, Epoch: r.passes.Done(), EX: &ex, EXSeen: seen.measured(), EXUnseen: unseen.measured(),
		Validated: all.all, Seconds: time.Since(started).Seconds()}
	if m.Best, err = r.run.Improved(ex); err != nil {
		return err
	}
	if target := r.config.Train.StopAtEX; target > 0 && ex >= target {
		r.state.Stopped = fmt.Sprintf("execution accuracy of %.3f reached", target)
	}
	r.run.Log.Info("validation", "step", r.state.Step, "ex", run.Figure{Value: ex}, "ex_seen", run.Figure{Value: seen.share()},
		"ex_unseen", run.Figure{Value: unseen.share()}, "questions", all.all, "best", m.Best)
	return r.run.Write(&m)
}
