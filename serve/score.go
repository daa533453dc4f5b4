package serve

import (
	"cmp"
	"context"
	"net/http"

	"caper/data"
	"caper/eval"
	"caper/sql"
)

// clause is a clause of a query: its text from Start to End, in bytes, and its score.
type clause struct {
	Kind  sql.ClauseKind `json:"kind"`
	Start int            `json:"start"`
	End   int            `json:"end"`
	Text  string         `json:"text"`
	Score *float64       `json:"score,omitempty"`
}

// scored is a query with its clauses; scores are nil without a reward model.
type scored struct {
	SQL     string   `json:"sql"`
	Clauses []clause `json:"clauses"`
	// EndScore is that of the end of the query, Score the mean of log sigmoid of the
	// clauses' (caper.md 1.4.10).
	EndScore *float64 `json:"end_score,omitempty"`
	Score    *float64 `json:"score,omitempty"`
}

// score answers POST /api/score {"db_id", "question", "evidence", "sql": [...]} with
// {"queries": [...]}. In the place of db_id there may be the schema, as a prompt says it
// (data.Benchmark.Prompt).
func (s *Service) score(ctx context.Context, body []byte) (any, error) {
	var asked struct {
		Question
		Schema string   `json:"schema"`
		SQL    []string `json:"sql"`
	}
	if err := cmp.Or(decode(body, &asked), checkTexts(asked.Question)); err != nil {
		return nil, err
	}
	if s.Scorer == nil {
		return nil, refuse(http.StatusNotImplemented, "there is no reward model here: start caper serve with --model DIR")
	}
	if n := len(asked.SQL); n == 0 || n > s.Limits.Candidates {
		return nil, refuse(http.StatusBadRequest, "sql: %d queries: give from 1 to %d", n, s.Limits.Candidates)
	}
	prompt := data.PromptText(asked.Schema, question(asked.Question))
	if asked.Schema == "" {
		var err error
		if prompt, err = s.prompt(asked.Question); err != nil {
			return nil, err
		}
	} else if asked.Database != "" {
		return nil, refuse(http.StatusBadRequest, "schema: give that or db_id, not both")
	}
	queries, err := s.scores(ctx, prompt, asked.SQL)
	return map[string]any{"queries": queries}, err
}

// prompt is what a reward model reads before a query on one of our databases.
func (s *Service) prompt(q Question) (string, error) {
	if err := s.known(q.Database); err != nil {
		return "", err
	}
	return s.Bench.Prompt(question(q))
}

// scores cuts queries into clauses and, where there is a reward model, scores them.
func (s *Service) scores(ctx context.Context, prompt string, queries []string) ([]scored, error) {
	all := make([]scored, len(queries))
	for i, query := range queries {
		all[i] = scored{SQL: query, Clauses: []clause{}}
		for _, c := range sql.Clauses(query) {
			all[i].Clauses = append(all[i].Clauses, clause{Kind: c.Kind, Start: c.Start, End: c.End, Text: query[c.Start:c.End]})
		}
	}
	if s.Scorer == nil || len(queries) == 0 {
		return all, nil
	}
	found, err := s.Scorer.Score(ctx, prompt, queries)
	if err != nil {
		return nil, err
	}
	for i, scores := range found {
		for k := range all[i].Clauses {
			all[i].Clauses[k].Score = &scores.Clauses[k]
		}
		total := eval.QueryScore(scores, eval.Mean)
		all[i].EndScore, all[i].Score = &scores.End, &total
	}
	return all, nil
}

// question is q as the other packages know it.
func question(q Question) data.Question {
	return data.Question{Dataset: "serve", ID: data.IndexID(0), DBID: q.Database, Question: q.Text, Evidence: q.Evidence}
}
