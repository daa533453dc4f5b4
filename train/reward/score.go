package reward

import (
	"fmt"
	"math"
	"slices"

	"caper/eval"
	"caper/model"
)

// Scorer gives the clauses of answers their probabilities. It serves one goroutine at a
// time.
type Scorer struct {
	scorer      ClauseScorer
	kind        Kind
	temperature float64
}

// ClauseScorer scores clauses; model.Scorer is one.
type ClauseScorer interface {
	Score([]model.Request) [][]model.Scores
}

// NewScorer returns a scorer of rewards of a kind: p = sigmoid(s / temperature).
func NewScorer(scorer ClauseScorer, kind Kind, temperature float64) (*Scorer, error) {
	if !(temperature > 0) {
		return nil, fmt.Errorf("temperature of scores is %g: must be above 0", temperature)
	}
	return &Scorer{scorer, kind, temperature}, nil
}

// Group are the answers to one prompt.
type Group struct {
	Prompt  string // as the reward model reads it
	Answers []*Answer
}

// Score fills in Scores, and Prefixes where the kind needs them, of those answers that are
// queries: of a group in one packed tree, equal ones once. A score that is no finite number
// makes the reward missing.
func (s *Scorer) Score(groups []Group) {
	requests := make([]model.Request, len(groups))
	places := make([]map[string]int, len(groups)) // of queries in their request
	for i, g := range groups {
		requests[i].Prompt, places[i] = g.Prompt, map[string]int{}
		for _, a := range g.Answers {
			for _, query := range s.queries(a) {
				if _, known := places[i][query]; !known {
					places[i][query] = len(requests[i].Queries)
					requests[i].Queries = append(requests[i].Queries, eval.ScoreRequest("", []string{query}).Queries...)
				}
			}
		}
	}
	for i, scores := range s.scorer.Score(requests) {
		for _, a := range groups[i].Answers {
			if a.Query != "" {
				s.fill(a, places[i], scores)
			}
		}
	}
}

// queries are the texts whose scores an answer needs.
func (s *Scorer) queries(a *Answer) []string {
	switch {
	case a.Query == "":
		return nil
	case s.kind == Token:
		return append(a.prefixes(), a.Query)
	}
	return []string{a.Query}
}

// fill sets the probabilities of an answer.
func (s *Scorer) fill(a *Answer, places map[string]int, scores []model.Scores) {
	a.Scores, a.Prefixes = s.probabilities(scores[places[a.Query]].Clauses), nil
	if s.kind == Token {
		a.Prefixes = s.ofPrefixes(a, places, scores)
	}
	if !finite(a.Scores) || !finite(a.Prefixes) || len(a.Scores) != len(a.Clauses) {
		a.Missing = "score"
	}
}

// prefixes are the query up to the end of each token.
func (a *Answer) prefixes() []string {
	texts := make([]string, len(a.Ends))
	for t, end := range a.Ends {
		texts[t] = a.Query[:min(max(end-a.Start, 0), len(a.Query))]
	}
	return texts
}

// ofPrefixes are the probabilities of the last clause of each prefix: how well the query
// goes so far. Before there is a clause it is 0.
func (s *Scorer) ofPrefixes(a *Answer, places map[string]int, scores []model.Scores) []float64 {
	all := make([]float64, len(a.Ends))
	for t, prefix := range a.prefixes() {
		if clauses := scores[places[prefix]].Clauses; len(clauses) > 0 {
			all[t] = s.probability(clauses[len(clauses)-1])
		}
	}
	return all
}

func (s *Scorer) probabilities(scores []float64) []float64 {
	all := make([]float64, len(scores))
	for k, x := range scores {
		all[k] = s.probability(x)
	}
	return all
}

// probability is NaN for a score that is no finite number.
func (s *Scorer) probability(score float64) float64 {
	if math.IsInf(score, 0) {
		return math.NaN()
	}
	return 1 / (1 + math.Exp(-score/s.temperature))
}

func finite(probabilities []float64) bool { return !slices.ContainsFunc(probabilities, math.IsNaN) }
