package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
)

// Question is one question of a benchmark's split. Evidence, Gold and Difficulty
// are empty where the benchmark gives none.
type Question struct {
	Dataset    string
	ID         QuestionID
	DBID       string
	Question   string
	Evidence   string
	Gold       string
	Difficulty string
	Split      string
}

// Questions reads a split: the questions of SPLIT.json, in its order. An id that
// the file does not give is the index in the split. Spider's own name for the file
// of its training split, train_spider.json with train_others.json, is known too, and
// SynSQL's only file is its split train. Callers share the list and must not change it.
func (b *Benchmark) Questions(split string) ([]Question, error) {
	b.mu.Lock()
	known := b.questions[split]
	b.mu.Unlock()
	if known != nil {
		return known, nil
	}
	paths := b.splitFiles(split)
	if len(paths) == 0 {
		return nil, fmt.Errorf("benchmark %s has no split %q: %s is missing", b.Dir, split, filepath.Join(b.Dir, split+".json"))
	}
	var questions []Question
	for _, path := range paths {
		for q, err := range readQuestions(path) {
			if err != nil {
				return nil, err
			}
			q.Dataset, q.Split = b.Name, split
			if q.ID.IsZero() {
				q.ID = IndexID(len(questions))
			}
			questions = append(questions, q)
		}
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("%s: no questions", paths[0])
	}
	b.keepQuestions(split, questions)
	return questions, nil
}

// keepQuestions makes them those of a split, for as long as the benchmark is open.
func (b *Benchmark) keepQuestions(split string, questions []Question) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.questions == nil {
		b.questions = map[string][]Question{}
	}
	b.questions[split] = questions
}

// Files lists the files that a split is made of beside its databases: its questions,
// then the descriptions of schemas.
func (b *Benchmark) Files(split string) []string {
	return append(b.splitFiles(split), existing(b.Dir, b.layout.tables)...)
}

func (b *Benchmark) splitFiles(split string) []string {
	if !isName(split) {
		return nil
	}
	if paths := existing(b.Dir, []string{split + ".json"}); len(paths) > 0 {
		return paths
	}
	if b.Layout == "synsql" && split == "train" {
		return existing(b.Dir, []string{"data.json"})
	}
	return existing(b.Dir, []string{split + "_spider.json", split + "_others.json"})
}

// questionFields are the names that the layouts give to the parts of a question.
// Spider's "sql" is a parse, not a text.
type questionFields struct {
	ID                QuestionID      `json:"question_id"`
	DBID              string          `json:"db_id"`
	Question          string          `json:"question"`
	Query             string          `json:"query"`
	SQL               string          `json:"SQL"`
	LowerSQL          json.RawMessage `json:"sql"`
	Evidence          string          `json:"evidence"`
	ExternalKnowledge string          `json:"external_knowledge"`
	Difficulty        string          `json:"difficulty"`
}

func (f *questionFields) question() (Question, error) {
	q := Question{
		ID: f.ID, DBID: f.DBID, Question: f.Question, Difficulty: f.Difficulty,
		Gold: firstOf(f.Query, f.SQL), Evidence: firstOf(f.Evidence, f.ExternalKnowledge),
	}
	if q.Gold == "" && len(f.LowerSQL) > 0 && f.LowerSQL[0] == '"' {
		if err := json.Unmarshal(f.LowerSQL, &q.Gold); err != nil {
			return q, fmt.Errorf("sql: %w", PlainJSONError(err))
		}
	}
	switch {
	case q.DBID == "":
		return q, errors.New("db_id: missing")
	case q.Question == "":
		return q, errors.New("question: missing")
	}
	return q, nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// readQuestions streams a JSON list of questions.
func readQuestions(path string) iter.Seq2[Question, error] {
	return func(yield func(Question, error) bool) {
		for object, err := range readJSONList(path) {
			var f questionFields
			var q Question
			if err == nil {
				_, err = unmarshalWithExtra(object.text, &f)
				if err == nil {
					q, err = f.question()
				}
				if err != nil {
					err = object.errorf("%w", err)
				}
			}
			if !yield(q, err) || err != nil {
				return
			}
		}
	}
}
