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

// Score fills in Scores, and Prefixes where the kind needs them, of the answers to one
// prompt that are queries: all in one packed tree, equal ones once. A score that is no
// finite number makes the reward missing.
func (s *Scorer) Score(prompt string, answers []*Answer) {
	request := model.Request{Prompt: prompt}
	places := map[string]int{}
	ask := func(query string) {
		if _, known := places[query]; known {
			return
		}
		places[query] = len(request.Queries)
		request.Queries = append(request.Queries, eval.ScoreRequest("", []string{query}).Queries...)
	}
	for _, a := range answers {
		if a.Query != "" {
			ask(a.Query)
		}
		if s.kind == Token {
			for _, prefix := range a.prefixes() {
				ask(prefix)
			}
		}
	}
	if len(request.Queries) == 0 {
		return
	}
	scores := s.scorer.Score([]model.Request{request})[0]
	for _, a := range answers {
		if a.Query == "" {
			continue
		}
		a.Scores = s.probabilities(scores[places[a.Query]].Clauses)
		a.Prefixes = nil
		if s.kind == Token {
			a.Prefixes = s.ofPrefixes(a, places, scores)
		}
		if !finite(a.Scores) || !finite(a.Prefixes) || len(a.Scores) != len(a.Clauses) {
			a.Missing = "score"
		}
	}
}

// prefixes are the query up to the end of each token.
func (a *Answer) prefixes() []string {
	if a.Query == "" {
		return nil
	}
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
