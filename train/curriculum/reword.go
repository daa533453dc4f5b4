package curriculum

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"caper/data"
	"caper/data/sample"
	"caper/engine"
	"caper/model/remote"
	"caper/sql"
)

// Change is a question whose query was changed, and is to be asked anew.
type Change struct {
	Question data.Question // as it was
	Name     string        // of the change
	SQL      string        // the changed query
	Schema   *sql.Schema
	Seed     uint64 // of what is drawn
}

// Wording is a changed query in words.
type Wording struct {
	Question string
	// SQL is a second query that answers the question, written without regard to the
	// first: where the results differ, the question is not that of the query.
	SQL string
}

// ErrNoWording says that a changed query cannot be asked.
var ErrNoWording = errors.New("no wording")

// Reworder asks changed queries. It returns an ErrNoWording for those that it has no words
// for; another error ends the run.
type Reworder interface {
	Reword(ctx context.Context, c Change) (Wording, error)
}

// Template asks in the words of the built-in benchmark, which has a phrase for every part
// of its own queries. The second query is written from what the question was made of, not
// from the changed one.
type Template struct{}

// Reword implements Reworder.
func (Template) Reword(_ context.Context, c Change) (Wording, error) {
	tree, err := sql.Parse(c.SQL)
	if err != nil {
		return Wording{}, err
	}
	q, err := sample.ReadQuery(tree, c.Schema)
	if err != nil {
		return Wording{}, fmt.Errorf("%w: %w", ErrNoWording, err)
	}
	r := engine.Random(c.Seed, "wording", 0, 0)
	return Wording{q.Question(r), q.Rewritten(r).SQL(sample.Style{Aliases: true, Flip: true})}, nil
}

// ServerReworder asks a model server for the question, and then, showing it that question
// alone, for a query.
type ServerReworder struct {
	Server *remote.Server
	// Prompt writes schema and question; data.Benchmark.Prompt does.
	Prompt func(data.Question) (string, error)
	// Extract finds the query in an answer.
	Extract   func(string) string
	MaxTokens int
}

// Reword implements Reworder.
func (s *ServerReworder) Reword(ctx context.Context, c Change) (Wording, error) {
	prompt, err := s.Prompt(c.Question)
	if err != nil {
		return Wording{}, err
	}
	answer, err := s.ask(ctx, c.Seed, fmt.Sprintf("%s\n\nThis question is answered by the SQLite query\n%s\n\nWrite the question that is answered by the query\n%s\n\n"+
		"Ask for exactly what that query returns, in the style of the first question, without words of SQL. Reply with the question only, on one line.",
		prompt, c.Question.Gold, c.SQL))
	if err != nil {
		return Wording{}, err
	}
	w := Wording{Question: strings.TrimSpace(answer)}
	if w.Question == "" || strings.Contains(w.Question, "\n") {
		return w, fmt.Errorf("%w: the model server answers no single line", ErrNoWording)
	}
	reworded := c.Question
	reworded.Question = w.Question
	if prompt, err = s.Prompt(reworded); err != nil {
		return w, err
	}
	answer, err = s.ask(ctx, c.Seed, prompt+"\nWrite one SQLite query that answers the question. Reply with the query only, in a ```sql block.")
	if err != nil {
		return w, err
	}
	w.SQL = s.Extract(answer)
	return w, nil
}

// ask asks for one answer. A server that gives none has no wording; one that is spent or
// cannot be reached has none for any question either, and ends the run.
func (s *ServerReworder) ask(ctx context.Context, seed uint64, text string) (string, error) {
	answers, _, err := s.Server.Ask(ctx, remote.Call{Messages: []remote.Message{{Role: "user", Content: text}}, N: 1, MaxTokens: s.MaxTokens, Seed: seed & (1<<31 - 1)})
	var failed *remote.CallError
	if errors.As(err, &failed) && failed.Fault != remote.Unreachable && failed.Fault != remote.Spent {
		return "", fmt.Errorf("%w: %w", ErrNoWording, err)
	}
	if err != nil {
		return "", err
	}
	if len(answers) == 0 {
		return "", fmt.Errorf("%w: the model server gives no answer", ErrNoWording)
	}
	return answers[0], nil
}
