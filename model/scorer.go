package model

import (
	"errors"

	"caper/engine"
)

// Scorer scores the clauses of queries with a clause reward model. Queries on one
// prompt share it, and whatever else they begin with, in a packed tree. A Scorer
// keeps its memory from call to call and serves one goroutine at a time.
type Scorer struct {
	model  *Model
	layout *Layout
	budget int
	tape   *engine.Tape
	tree   engine.Tree
}

// Request asks for the scores of queries on one prompt.
type Request struct {
	Prompt  string
	Queries [][]string // the texts of each query's clauses, in order
}

// Scores are the scores of one query: higher is better. End is the score of ending
// the query after its last clause.
type Scores struct {
	Clauses []float64
	End     float64
}

// defaultBudget is the number of tokens in a micro-batch when the caller has no wish.
const defaultBudget = 8192

// NewScorer returns a scorer that computes at most budget tokens at once, but always
// at least one query; 0 chooses. The number changes speed and memory, not the scores.
func NewScorer(m *Model, budget int) (*Scorer, error) {
	if !m.HasScores() {
		return nil, errors.New("the model has no score head: not a reward model; caper train prm makes one of it")
	}
	layout, err := m.Layout()
	if err != nil {
		return nil, err
	}
	if budget <= 0 {
		budget = defaultBudget
	}
	s := &Scorer{model: m, layout: layout, budget: budget, tape: engine.NewTape(m.dev)}
	s.tape.Inference = true
	return s, nil
}

// Score returns the scores of every query of every request, in their order.
func (s *Scorer) Score(requests []Request) [][]Scores {
	results := make([][]Scores, len(requests))
	var batch []query
	tokens := 0
	for i, request := range requests {
		results[i] = make([]Scores, len(request.Queries))
		prompt := s.layout.Prompt(nil, request.Prompt)
		shared := 0 // tokens of the prompt that the batch holds already
		for j, units := range request.Queries {
			q := query{Sequence: s.layout.Query(prompt, units), scores: &results[i][j]}
			if len(batch) > 0 && tokens+len(q.Tokens)-shared > s.budget {
				s.run(batch)
				batch, tokens, shared = batch[:0], 0, 0
			}
			batch = append(batch, q)
			tokens += len(q.Tokens) - shared
			shared = len(prompt)
		}
	}
	s.run(batch)
	return results
}

// query is a query in a micro-batch and where its scores go.
type query struct {
	Sequence
	scores *Scores
}

func (s *Scorer) run(batch []query) {
	if len(batch) == 0 {
		return
	}
	sequences := make([][]int32, len(batch))
	for i, q := range batch {
		sequences[i] = q.Tokens
	}
	s.tape.Reset()
	s.tree.Reset()
	var marked []int32
	for i, rows := range s.tree.Pack(sequences) {
		for _, mark := range batch[i].Marks {
			marked = append(marked, rows[mark])
		}
	}
	scores := s.model.Scores(s.tape, &s.tree, marked)
	row := 0
	for _, q := range batch {
		clauses := len(q.Marks) - 1
		q.scores.Clauses = make([]float64, clauses)
		for k := range clauses {
			q.scores.Clauses[k] = scores.At(row+k, 0)
		}
		q.scores.End = scores.At(row+clauses, 0)
		row += clauses + 1
	}
}
