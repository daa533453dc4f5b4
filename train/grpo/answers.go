package grpo

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"caper/data"
	"caper/sql"
)

// answersName is the file of sampled answers in the run folder: a line of JSON for each
// answer of the steps that are written.
const answersName = "rollouts.jsonl"

// line is an answer for people to read, and for caper eval: a candidate with what it was
// rewarded for.
type line struct {
	Step     int             `json:"step"`
	Question data.QuestionID `json:"question_id"`
	Database string          `json:"db_id"`
	Text     string          `json:"question"`
	Gold     string          `json:"gold"`
	SQL      string          `json:"sql"`
	Sample   int             `json:"sample"`
	Verdict  string          `json:"verdict"`
	Message  string          `json:"message,omitempty"`
	Missing  string          `json:"missing,omitempty"`
	Tokens   int             `json:"tokens"`
	Finish   string          `json:"finish"`
	Clauses  []clause        `json:"clauses,omitempty"`
}

// clause is one clause of an answer. Score is the probability that the reward model gives
// it, Advantage that of its first token: null where there is none.
type clause struct {
	Kind      sql.ClauseKind `json:"kind"`
	Text      string         `json:"text"`
	Score     *float64       `json:"score"`
	Advantage *float32       `json:"advantage"`
}

// answerFile appends to rollouts.jsonl.
type answerFile struct{ f *os.File }

// openAnswers opens the file, without the lines of steps after the given one: they come
// again.
func openAnswers(dir string, step int) (*answerFile, error) {
	path := filepath.Join(dir, answersName)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w, err := data.Create(path)
	if err != nil {
		return nil, err
	}
	defer w.Discard()
	for l := range bytes.Lines(text) {
		var of struct{ Step int }
		if json.Unmarshal(l, &of) == nil && of.Step <= step && bytes.HasSuffix(l, []byte("\n")) {
			if _, err := w.Write(l); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Commit(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o644)
	return &answerFile{f}, err
}

// write writes the answers of a step.
func (w *answerFile) write(step int, questions []data.Question, groups []*group) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, g := range groups {
		q := questions[g.question]
		for i, a := range g.answers {
			l := line{Step: step, Question: q.ID, Database: q.DBID, Text: q.Question, Gold: q.Gold, SQL: a.Text, Sample: i, Verdict: string(a.Verdict),
				Message: a.Message, Missing: a.Missing, Tokens: len(a.Ends), Finish: string(g.samples[i].Finish), Clauses: clausesOf(g, i)}
			if a.Query != "" {
				l.SQL = a.Query
			}
			if err := encoder.Encode(l); err != nil {
				return err
			}
		}
	}
	_, err := w.f.Write(text.Bytes())
	return err
}

func clausesOf(g *group, i int) (all []clause) {
	a := g.answers[i]
	for k, c := range a.Clauses {
		out := clause{Kind: c.Kind, Text: a.Text[c.Start:c.End]}
		if k < len(a.Scores) && a.Missing == "" {
			out.Score = &a.Scores[k]
		}
		if g.advantages != nil {
			out.Advantage = firstOf(a.Ends, g.advantages[i], c.Start)
		}
		all = append(all, out)
	}
	return all
}

// firstOf is the advantage of the token that covers a byte.
func firstOf(ends []int, advantages []float32, at int) *float32 {
	for t, end := range ends {
		if end > at && t < len(advantages) {
			return &advantages[t]
		}
	}
	return nil
}

func (w *answerFile) close() error { return w.f.Close() }
