package model

import (
	"errors"

	"caper/engine"
)

// Scorer scores the clauses of queries with a clause reward model. Queries on one
// prompt share it, and whatever else they begin with, in packed trees. A Scorer
// keeps its memory from call to call and serves one goroutine at a time.
type Scorer struct {
	// Sharing counts what packing has saved so far.
	Sharing engine.Sharing

	model  *Model
	layout *Layout
	budget int
	tape   *engine.Tape
	packer engine.Packer
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
	var queries []query
	for i, request := range requests {
		results[i] = make([]Scores, len(request.Queries))
		prompt := s.layout.Prompt(nil, request.Prompt)
		for j, units := range request.Queries {
			queries = append(queries, query{s.layout.Query(prompt, units), &results[i][j]})
		}
	}
	groups := make([][][]int32, len(queries))
	for i, q := range queries {
		groups[i] = [][]int32{q.Tokens}
	}
	for s.packer.Cut(groups, s.budget); s.packer.Next(); s.Sharing.Add(&s.packer) {
		s.run(queries)
	}
	return results
}

// query is a query and where its scores go.
type query struct {
	Sequence
	scores *Scores
}

// run scores the queries of a micro-batch.
func (s *Scorer) run(queries []query) {
	var marked []int32
	for i, g := range s.packer.Groups {
		for _, mark := range queries[g].Marks {
			marked = append(marked, s.packer.Rows[i][mark])
		}
	}
	s.tape.Reset()
	scores := s.model.Scores(s.tape, &s.packer.Tree, marked).Values()
	row := 0
	for _, g := range s.packer.Groups {
		q := queries[g]
		clauses := len(q.Marks) - 1
		q.scores.Clauses = make([]float64, clauses)
		for k := range clauses {
			q.scores.Clauses[k] = scores[row+k]
		}
		q.scores.End = scores[row+clauses]
		row += clauses + 1
	}
}
