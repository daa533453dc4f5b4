package serve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"unicode/utf8"

	"caper/data"
	"caper/solve"
	"caper/sqlexec"
)

// candidate is one query that was written for the question, as it is shown.
type candidate struct {
	scored
	Source   string          `json:"source"`
	Style    string          `json:"style,omitempty"`
	Sample   int             `json:"sample"`
	State    solve.State     `json:"state"`
	Message  string          `json:"message,omitempty"`
	Rows     *int            `json:"rows,omitempty"`
	Class    int             `json:"class,omitempty"` // from 1 on; 0: it does not count
	Chosen   bool            `json:"chosen,omitempty"`
	Repairs  []solve.Repair  `json:"repairs,omitempty"`
	Findings []solve.Finding `json:"findings,omitempty"`
}

// class is the candidates that give one answer.
type class struct {
	Votes     int     `json:"votes"`
	Groups    int     `json:"groups"`
	Consensus float64 `json:"s_maj"`
	Reward    float64 `json:"s_rm"`
	Score     float64 `json:"score"`
	Rows      int     `json:"rows"`
	First     [][]any `json:"first,omitempty"` // its first rows and columns
}

// result is what the chosen query gives, cut to what is shown.
type result struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	Total   int      `json:"total_rows"`
	More    bool     `json:"more,omitempty"` // the query gives more than were read
}

// answer is all that POST /api/ask says.
type answer struct {
	SQL        string      `json:"sql"`
	State      solve.State `json:"state"`
	Message    string      `json:"message,omitempty"`
	Result     *result     `json:"result,omitempty"`
	Stage      solve.Stage `json:"stage"`
	Why        string      `json:"why"`
	Margin     float64     `json:"margin"`
	Classes    []class     `json:"classes"`
	Candidates []candidate `json:"candidates"`
	Cost       solve.Cost  `json:"cost"`
}

// ask answers POST /api/ask {"db_id", "question", "evidence", "candidates": [SQL...]}. The
// candidates that a request brings are added to those that generators write.
func (s *Service) ask(ctx context.Context, body []byte) (any, error) {
	var asked struct {
		Question
		Candidates []string `json:"candidates"`
	}
	err := cmp.Or(decode(body, &asked), checkTexts(asked.Question))
	if err != nil {
		return nil, err
	}
	if err := s.known(asked.Database); err != nil {
		return nil, err
	}
	if n := len(asked.Candidates); n > s.Limits.Candidates {
		return nil, refuse(http.StatusBadRequest, "candidates: %d: give at most %d", n, s.Limits.Candidates)
	}
	return s.answer(ctx, asked.Question, asked.Candidates)
}

// answer takes a question through the stages of package solve.
func (s *Service) answer(ctx context.Context, q Question, brought []string) (*answer, error) {
	pool := solve.Pool{Question: question(q), Candidates: append([]solve.Candidate{}, s.Known[q.Normal()]...)}
	for i, text := range brought {
		pool.Candidates = append(pool.Candidates, solve.Candidate{Rollout: data.Rollout{
			Dataset: pool.Question.Dataset, QuestionID: pool.Question.ID, DBID: q.Database, Question: q.Text, Evidence: q.Evidence,
			SQL: text, Source: "request", Sample: i,
		}})
	}
	generated, err := solve.Generate(ctx, pool, s.Generators)
	if err != nil {
		return nil, err
	}
	if len(generated.Candidates) == 0 {
		return nil, s.nothing(generated.Cost)
	}
	repaired, err := s.Repairer.Repair(ctx, generated.Pool)
	if err != nil {
		return nil, err
	}
	d, err := solve.Select(ctx, pool.Question, repaired.Candidates, s.Select)
	if err != nil {
		return nil, err
	}
	d.Cost.Add(generated.Cost)
	d.Cost.Add(repaired.Cost)
	s.counts.add(&d)
	return s.describe(ctx, q, &d, repaired.Findings)
}

// nothing says why there is no candidate.
func (s *Service) nothing(c solve.Cost) error {
	switch {
	case len(s.Generators) == 0 && len(s.Known) > 0:
		return refuse(http.StatusUnprocessableEntity, "nobody has written a query for this question: ask one of the examples in its own words, send queries as candidates, or start caper serve with --generator")
	case len(s.Generators) == 0:
		return refuse(http.StatusUnprocessableEntity, "nobody writes queries here: send some as candidates, or start caper serve with --generator")
	case c.Failed > 0:
		return refuse(http.StatusBadGateway, "the generators wrote nothing, %d calls of a model server failed: see to it that it runs", c.Failed)
	}
	return refuse(http.StatusBadGateway, "the generators wrote nothing for this question: put it in other words")
}

// describe turns a decision into an answer.
func (s *Service) describe(ctx context.Context, q Question, d *solve.Decision, findings [][]solve.Finding) (*answer, error) {
	var queries []string
	for i := range d.Candidates {
		queries = append(queries, d.Candidates[i].SQL)
	}
	prompt, err := s.prompt(q)
	if err != nil {
		return nil, err
	}
	scores, err := s.scores(ctx, prompt, queries)
	if err != nil {
		return nil, err
	}
	chosen := &d.Candidates[d.Chosen]
	a := &answer{
		SQL: chosen.SQL, State: chosen.State, Message: chosen.Message, Result: s.shown(chosen.Result),
		Stage: d.Stage, Why: d.Why(), Margin: d.Margin, Classes: []class{}, Cost: d.Cost,
	}
	of := map[int]int{}
	for k, c := range d.Classes {
		shown := class{Votes: c.Votes, Groups: c.Groups, Consensus: c.Consensus, Reward: c.Reward, Score: c.Score}
		if r := d.Candidates[c.Representative].Result; r != nil {
			shown.Rows, shown.First = len(r.Rows), s.cells(r, 3, 8, 4<<10)
		}
		a.Classes = append(a.Classes, shown)
		for _, i := range c.Members {
			of[i] = k + 1
		}
	}
	for i := range d.Candidates {
		x := &d.Candidates[i]
		c := candidate{
			scored: scores[i], Source: x.Source, Style: x.Style, Sample: x.Sample, State: x.State, Message: x.Message,
			Class: of[i], Chosen: i == d.Chosen, Repairs: x.Repairs, Findings: findings[i],
		}
		if x.Result != nil {
			n := len(x.Result.Rows)
			c.Rows = &n
		}
		a.Candidates = append(a.Candidates, c)
	}
	return a, nil
}

// shown cuts a result to what is shown of it.
func (s *Service) shown(r *sqlexec.Result) *result {
	if r == nil {
		return nil
	}
	out := &result{Columns: make([]string, len(r.Columns)), Rows: s.cells(r, s.Limits.Rows, len(r.Columns), 1<<20), Total: len(r.Rows), More: r.Truncated}
	for i, name := range r.Columns {
		out.Columns[i] = cut(name, s.Limits.Cell)
	}
	return out
}

// cells are the first cells of a result: at most so many rows and columns, and rows until
// there are so many bytes.
func (s *Service) cells(r *sqlexec.Result, rows, columns, bytes int) [][]any {
	all := [][]any{}
	for _, row := range r.Rows[:min(len(r.Rows), rows)] {
		cells := make([]any, min(len(row), columns))
		for j := range cells {
			cells[j] = s.cell(row[j])
			bytes -= 8
			if text, ok := cells[j].(string); ok {
				bytes -= len(text)
			}
		}
		all = append(all, cells)
		if bytes < 0 {
			break
		}
	}
	return all
}

// cell is a value as JSON. What JSON lacks or a browser would round is text: bytes as SQL
// writes them, numbers without end, whole numbers beyond 2^53.
func (s *Service) cell(v sqlexec.Value) any {
	const exact = 1 << 53
	switch v := v.(type) {
	case []byte:
		return cut(fmt.Sprintf("x'%x'", v[:min(len(v), s.Limits.Cell)]), s.Limits.Cell)
	case string:
		return cut(v, s.Limits.Cell)
	case int64:
		if v > exact || v < -exact {
			return fmt.Sprint(v)
		}
	case float64:
		if math.IsInf(v, 0) {
			return strings.TrimPrefix(fmt.Sprint(v), "+")
		}
	}
	return v
}

// cut shortens a text to so many bytes, at the border of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
