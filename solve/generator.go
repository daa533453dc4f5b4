package solve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"caper/data"
	"caper/model"
	"caper/model/generate"
	"caper/model/remote"
)

// Generator writes candidates for a question. What it cannot write it leaves out: its
// error is the machine's or ctx's.
type Generator interface {
	Generate(ctx context.Context, q data.Question) ([]Candidate, Cost, error)
}

// Draw is how a generator is asked.
type Draw struct {
	Name        string // provenance: the candidates' source
	Style       Style
	Count       int
	Temperature float64
	MaxTokens   int
	Seed        uint64
}

// candidates makes candidates of texts.
func (d *Draw) candidates(q data.Question, texts []string, read func(string) string) []Candidate {
	var all []Candidate
	for i, text := range texts {
		r := data.Rollout{Dataset: q.Dataset, QuestionID: q.ID, DBID: q.DBID, Question: q.Question, Evidence: q.Evidence,
			SQL: read(text), Source: d.Name, Sample: i}
		all = append(all, Candidate{Rollout: r, Style: string(d.Style)})
	}
	return all
}

// ServerGenerator asks a model server.
type ServerGenerator struct {
	Draw
	Server   *remote.Server
	Prompter *Prompter
}

// Generate implements Generator. Servers that give one answer a call, whatever is
// asked of them, are called again for the others.
func (g *ServerGenerator) Generate(ctx context.Context, q data.Question) ([]Candidate, Cost, error) {
	messages, err := g.Prompter.Messages(ctx, q, g.Style)
	if err != nil {
		return nil, Cost{}, err
	}
	var texts []string
	var cost Cost
	for len(texts) < g.Count {
		answers, spent, err := g.Server.Ask(ctx, remote.Call{Messages: messages, N: g.Count - len(texts), Temperature: g.Temperature,
			MaxTokens: g.MaxTokens, Seed: g.Seed + uint64(len(texts)) + 1})
		cost.addCalls(spent)
		if errors.As(err, new(*remote.CallError)) {
			break
		}
		if err != nil {
			return nil, cost, err
		}
		texts = append(texts, answers[:min(len(answers), g.Count-len(texts))]...)
	}
	return g.candidates(q, texts, ExtractSQL), cost, nil
}

// ModelGenerator samples from a model of our own. It is safe for concurrent use; one
// question at a time is served.
type ModelGenerator struct {
	Draw
	Prompter *Prompter

	mu        sync.Mutex
	model     *model.Model
	generator *generate.Generator
	request   generate.Request
}

// NewModelGenerator returns one whose samples are drawn as request says; its prompt,
// count and seed come from the draw and the question.
func NewModelGenerator(d Draw, p *Prompter, m *model.Model, request generate.Request) (*ModelGenerator, error) {
	if m.Tokenizer == nil {
		return nil, errors.New("the model folder has no tokenizer.json")
	}
	generator, err := generate.New(m, generate.Options{})
	if err != nil {
		return nil, err
	}
	request.Samples, request.MaxTokens, request.Seed = d.Count, d.MaxTokens, d.Seed
	request.Rule.Temperature = d.Temperature
	return &ModelGenerator{Draw: d, Prompter: p, model: m, generator: generator, request: request}, nil
}

// Generate implements Generator. The same seed gives the same samples, in whatever
// order questions come.
func (g *ModelGenerator) Generate(ctx context.Context, q data.Question) ([]Candidate, Cost, error) {
	text, err := g.Prompter.Text(ctx, q, g.Style)
	if err != nil {
		return nil, Cost{}, err
	}
	request := g.request
	request.Prompt = g.model.Tokenizer.EncodeText(text, nil)
	request.Stream = streamOf(q)
	if err := g.generator.Check(&request); err != nil {
		return nil, Cost{}, fmt.Errorf("question %s: %w", q.ID, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	results, err := g.generator.Generate(ctx, []generate.Request{request})
	if err != nil {
		return nil, Cost{}, err
	}
	cost := Cost{Calls: 1, TokensIn: len(request.Prompt)}
	var texts []string
	for _, s := range results[0].Samples {
		cost.TokensOut += len(s.Tokens)
		texts = append(texts, s.Text)
	}
	return g.candidates(q, texts, plainOrExtracted), cost, nil
}

// plainOrExtracted is what a model says, as it stands unless there is a query in it.
func plainOrExtracted(text string) string {
	if query := ExtractSQL(text); query != "" {
		return query
	}
	return text
}
