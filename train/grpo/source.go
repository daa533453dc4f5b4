package grpo

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"caper/data"
	"caper/kernels/sampling"
	"caper/model/chat"
	"caper/model/generate"
	"caper/model/remote"
	"caper/train/curriculum"
	"caper/train/rollout"
)

// questions are those to learn from, with their weights where a curriculum gives them.
func (t *trainer) questions() (questions []data.Question, weights map[data.QuestionID]float64, err error) {
	c := t.config
	if c.Train.Curriculum != "" {
		items, err := curriculum.Read(c.Train.Curriculum)
		if err != nil {
			return nil, nil, c.mistake("train.curriculum", "%w", err)
		}
		weights = map[data.QuestionID]float64{}
		for _, i := range items {
			if i.Weight > 0 {
				questions, weights[i.Question.ID] = append(questions, i.Question), i.Weight
			}
		}
		if len(questions) != len(weights) {
			return nil, nil, c.mistake("train.curriculum", "questions with the same question_id")
		}
	} else if questions, err = t.bench.Questions(c.Train.Split); err != nil {
		return nil, nil, c.mistake("train.split", "%w", err)
	}
	if n := c.Train.Questions; n > 0 {
		questions = questions[:min(n, len(questions))]
	}
	return questions, weights, nil
}

// sampler draws answers with the policy as it is, where it is.
func (t *trainer) sampler(rule sampling.Rule, samples int) (rollout.Source, error) {
	o, err := t.draws(rule, samples)
	if err != nil {
		return nil, err
	}
	return rollout.NewNative(t.Model, o, t.state.Step)
}

// server asks a model server, which is given the weights that a resumed run goes on with.
func (t *trainer) server(ctx context.Context, rule sampling.Rule) (rollout.Source, error) {
	c := t.config.Rollout
	o, err := t.draws(rule, c.Samples)
	if err != nil {
		return nil, err
	}
	seconds := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	s := remote.NewServer(c.Server, c.ServerModel)
	s.API, s.Timeout, s.Attempts, s.Turns = remote.API(c.ServerAPI), seconds(c.CallTimeout), c.Attempts, c.ServerCalls
	source, err := rollout.NewServer(s, t.Model.Tokenizer, rollout.ServerOptions{Options: o, PerCall: c.PerCall, StepTimeout: seconds(c.StepTimeout),
		Folder: filepath.Join(t.config.Train.Out, "policy"), Reload: c.Reload}, t.state.Step)
	if err != nil {
		return nil, t.config.mistake("rollout.server", "%w", err)
	}
	if t.state.Step == 0 {
		return source, nil
	}
	return source, source.Update(ctx, t.Model, t.state.Step)
}

// draws are how answers are drawn.
func (t *trainer) draws(rule sampling.Rule, samples int) (o rollout.Options, err error) {
	c := t.config
	ends, err := generate.EndTokens(c.Model.Path)
	if err != nil {
		return o, err
	}
	if id, ok := t.Model.Tokenizer.ID(cmp.Or(t.Model.Config.EndToken, c.Model.EndToken)); ok && !slices.Contains(ends, id) {
		ends = append(ends, id)
	}
	if len(ends) == 0 {
		return o, c.mistake("model.path", "its config.json names no eos_token_id, and its tokenizer has no model.end_token: no answer would end")
	}
	return rollout.Options{Samples: samples, MaxTokens: c.Rollout.MaxTokens, Rule: rule, EndTokens: ends,
		Seed: c.Train.Seed, Memory: generate.Options{Tokens: c.Rollout.CacheTokens, Batch: c.Rollout.Batch}}, nil
}

// prompter returns what makes a question's prompt the policy's tokens.
func (t *trainer) prompter() func(q data.Question) (string, []int32, error) {
	var template *chat.Template
	return func(q data.Question) (string, []int32, error) {
		text, err := t.bench.Prompt(q)
		if err != nil || !t.config.Rollout.Chat {
			return text, t.Model.Tokenizer.EncodeText(text, nil), err
		}
		if template == nil {
			if template, err = chat.Load(t.config.Model.Path); err != nil {
				return "", nil, err
			}
		}
		tokens, err := template.Encode(t.Model.Tokenizer, []chat.Message{{Role: chat.User, Content: text}},
			chat.Options{AddGenerationPrompt: true, Thinking: chat.ThinkingOff})
		return text, tokens, err
	}
}

// ask takes questions whose prompts have at most longest tokens; it returns how many have
// more.
func (c *collector) ask(questions []data.Question, prompt func(data.Question) (string, []int32, error), longest int) (tooLong int, err error) {
	c.questions, c.prompts = nil, nil
	for _, q := range questions {
		text, tokens, err := prompt(q)
		if err != nil {
			return 0, fmt.Errorf("question %s: %w", q.ID, err)
		}
		if len(tokens) > longest {
			tooLong++
			continue
		}
		c.prompts = append(c.prompts, rollout.Question{Index: len(c.questions), Prompt: text, Tokens: tokens})
		c.questions = append(c.questions, q)
	}
	return tooLong, nil
}
